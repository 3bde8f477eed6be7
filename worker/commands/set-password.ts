import { randomBytes } from 'node:crypto'
import { setPassword } from '../../db/access/password-resets.ts'
import { ConfigError } from '../../db/model/config-error.ts'
import { operatorCommand } from './operator-command.ts'

/** `npm run set-password -- <email>`: gives a user a new password, prints it and ends the user's sessions. */
await operatorCommand('set-password', 'the password cannot be set', async (connected) => {
  const [email, ...others] = process.argv.slice(2)
  if (!email || others.length > 0) throw new ConfigError('usage: npm run set-password -- <email>')
  const password = randomBytes(12).toString('base64url')
  await setPassword(connected().system, email, password)
  return `password of ${email} (shown once): ${password}`
})
