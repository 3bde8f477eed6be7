{{- define "agx.labels" -}}
app.kubernetes.io/name: agx
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "agx.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* The settings of a list of maps, the later ones first; and the files of the secrets. */}}
{{- define "agx.env" -}}
{{- range $name, $value := .settings }}
- name: {{ $name }}
  value: {{ $value | toString | quote }}
{{- end }}
{{- range $name, $key := .secrets }}
- name: {{ $name }}_FILE
  value: /secrets/{{ $name }}
{{- end }}
{{- end }}

{{- define "agx.container" -}}
image: {{ include "agx.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
{{- end }}

{{/* The user of the image. */}}
{{- define "agx.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 1000
  runAsGroup: 1000
  fsGroup: 1000
  seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "agx.mounts" -}}
- { name: tmp, mountPath: /tmp }
- { name: secrets, mountPath: /secrets, readOnly: true }
{{- if .Values.filesClaim }}
- { name: files, mountPath: /files }
{{- end }}
{{- end }}

{{- define "agx.secretItems" -}}
secret:
  name: {{ required "secret.name: the Secret with the URLs of the database and SECRETS_KEY" .name }}
  items:
{{- range $name, $key := .keys }}
    - { key: {{ $key }}, path: {{ $name }} }
{{- end }}
{{- end }}

{{- define "agx.volumes" -}}
- name: tmp
  emptyDir: {}
- name: secrets
  projected:
    defaultMode: 0440
    sources:
      - {{- include "agx.secretItems" .Values.secret | nindent 8 }}
{{- if .Values.filesClaim }}
- name: files
  persistentVolumeClaim: { claimName: {{ .Values.filesClaim }} }
{{- end }}
{{- end }}
