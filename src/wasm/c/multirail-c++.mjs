#!/usr/bin/env node
// `multirail c++` as one word, for builds that take a compiler's name and no arguments with it.
process.argv.splice(2, 0, 'c++');
await import('../cli.js');
