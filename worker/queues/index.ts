import type { HttpClient } from '../../activities/http/client.ts'
import type { OpenMailboxes } from '../../activities/mail/mailbox.ts'
import type { ApprovalKey } from '../../db/process/approval-links.ts'
import type { SecretsKey } from '../../db/process/seal.ts'
import type { FileStorage } from '../../db/process/storage/storage.ts'
import { incomingThreads } from '../polls/incoming-threads.ts'
import type { Queue } from '../relay.ts'
import { deliveriesTaskQueue } from '../workers.ts'
import { accountMailsQueue } from './account-mails.ts'
import { approvalMailsQueue } from './approval-mails.ts'
import { bulkJobsQueue } from './bulk-jobs.ts'
import { cancelsQueue } from './cancels.ts'
import { deletedFilesQueue } from './deleted-files.ts'
import { deliveriesQueue } from './deliveries.ts'
import { deliveryChangesQueue } from './delivery-changes.ts'
import { dueWaitsQueue } from './due-waits.ts'
import { erasuresQueue } from './erasures.ts'
import { eventCancelsQueue } from './event-cancels.ts'
import { eventsQueue } from './events.ts'
import { FILE_SORTS, filesQueue } from './files.ts'
import { heldRunsQueue } from './held-runs.ts'
import { incomingPollsQueue } from './incoming-polls.ts'
import { incomingReplaysQueue } from './incoming-replays.ts'
import { lateRunsQueue } from './late-runs.ts'
import { listChangesQueue } from './list-changes.ts'
import { listPassesQueue } from './list-passes.ts'
import type { MailDeps } from './mails.ts'
import { outgoingReplaysQueue } from './outgoing-replays.ts'
import { runBatchesQueue } from './run-batches.ts'
import { runCommandsQueue } from './run-commands.ts'
import { type QueueDeps, runsQueue } from './runs.ts'
import { schedulesQueue } from './schedules.ts'
import { surplusRunsQueue } from './surplus-runs.ts'
import { taskRemindersQueue } from './task-reminders.ts'
import { waitingFiresQueue } from './waiting-fires.ts'
import { waitsQueue } from './waits.ts'

/** Every queue of the relay. `Queue` in `relay.ts` explains how to add one. */
export function allQueues({
  db,
  relayId,
  taskQueue,
  log,
  attributes,
  capacity,
  approvalLink,
  mailer,
  publicUrl,
  secretsKey,
  storage,
  onSkipped,
  onMail,
  http,
  openMailbox,
  onTask,
}: QueueDeps &
  MailDeps & {
    approvalLink: (approval: ApprovalKey) => string
    secretsKey: SecretsKey
    /** Polls sources. */
    http: Pick<HttpClient, 'call'>
    openMailbox: OpenMailboxes
    /** Undefined if the service keeps no files. */
    storage: FileStorage | undefined
    /** Called with the name of each task that a thread gets. */
    onTask?: (task: string) => void
    /** Counts a run of an event that was skipped, by the code of its error. */
    onSkipped?: (code: string) => void
  }): Queue<unknown>[] {
  const threads = incomingThreads(onTask)
  const { mapBody } = threads
  return [
    runsQueue({ db, relayId, taskQueue, attributes, capacity }),
    heldRunsQueue({ db, log }),
    surplusRunsQueue({ db, log }),
    lateRunsQueue({ db, log }),
    taskRemindersQueue({ db, log }),
    cancelsQueue(db),
    eventCancelsQueue(db),
    runCommandsQueue(db),
    runBatchesQueue(db),
    bulkJobsQueue(db),
    listChangesQueue({ db, log }),
    listPassesQueue({ db, log }),
    erasuresQueue(db),
    waitsQueue(db),
    dueWaitsQueue({ db, approvalLink }),
    approvalMailsQueue({ db, mailer, publicUrl, approvalLink, onMail }),
    accountMailsQueue({ db, mailer, publicUrl, secretsKey, onMail }),
    eventsQueue({ db, log, onSkipped }),
    deliveriesQueue({ relayId, taskQueue: deliveriesTaskQueue(taskQueue), attributes }),
    deliveryChangesQueue,
    outgoingReplaysQueue(db),
    incomingReplaysQueue(db, { mapBody, secretsKey }),
    incomingPollsQueue({ db, log, http, openMailbox, threads, secretsKey }),
    schedulesQueue({ db, taskQueue, attributes }),
    waitingFiresQueue(db),
    ...(storage ? [deletedFilesQueue({ db, storage })] : []),
    ...FILE_SORTS.map((sort) => filesQueue(sort, { taskQueue, attributes })),
  ]
}
