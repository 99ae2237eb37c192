#!/usr/bin/env node
// `multirail cc` as one word, for builds that take a compiler's name and no arguments with it.
process.argv.splice(2, 0, 'cc');
await import('../cli.js');
