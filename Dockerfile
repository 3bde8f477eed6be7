# The image of the api, the worker and the operator's commands: `docker build --build-arg COMMIT=$(git rev-parse HEAD) .`
# It runs as a user without rights, with a read-only root file system; /tmp must be writable (uploads to S3).
FROM node:22-bookworm-slim AS build
WORKDIR /agx
COPY package.json package-lock.json ./
# No scripts: the only one links the binaries of an embedded PostgreSQL.
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund
COPY . .
# Compiles the sources, and builds both bundles of the Temporal workflows (the second one is that of PAYLOAD_KEY), so that
# no process starts with a compiler. Pruned afterwards: the result of the compilation does not depend on it.
RUN node worker/run.mjs \
  && node --import tsx deploy/build-bundles.ts .data \
  && node deploy/prune-modules.mjs node_modules \
  && install -d /files

# The C++ runtime, CA certificates and time zones; no shell and no package manager. Debian's version is that of `build`.
FROM gcr.io/distroless/cc-debian12
COPY --from=build /usr/local/bin/node /usr/local/bin/node
COPY --from=build /etc/passwd /etc/group /etc/
COPY --from=build --chown=1000:1000 /files /files
WORKDIR /agx
COPY --from=build /agx ./
ARG COMMIT=
ENV NODE_ENV=production HOST=0.0.0.0 TZ=UTC MALLOC_ARENA_MAX=2 FILES_DIR=/files BUILD_COMMIT=$COMMIT
USER node
# The process itself is PID 1 and gets SIGTERM. Other commands: worker/main.ts, worker/commands/migrate.ts.
ENTRYPOINT ["/usr/local/bin/node", "--max-semi-space-size=4", "worker/run.mjs"]
CMD ["api/main.ts"]
