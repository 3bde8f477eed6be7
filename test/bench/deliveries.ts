import type { TestStack } from '../support/stack.ts'
export async function benchDeliveries(_stack: TestStack): Promise<void> {}
