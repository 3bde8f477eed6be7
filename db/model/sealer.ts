/** Encrypts texts that are stored, each for an owner: what it seals for one is no use in the row of another. */
export interface Sealer {
  seal(plaintext: string, owner: string): string
  /** Throws if the content was altered, or sealed for another owner or with an unknown key. */
  open(sealed: string, owner: string): string
}
