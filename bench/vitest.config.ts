import { defineConfig } from 'vitest/config';

// Measurements that need the test lab: not tests, since a time is no property. Run by bench/lab.sh.
export default defineConfig({ test: { include: ['bench/*.measure.ts'], testTimeout: 600_000, hookTimeout: 120_000, maxWorkers: 1 } });
