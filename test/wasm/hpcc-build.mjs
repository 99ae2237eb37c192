// HPCC by its own Makefiles, unedited: Debian's source package, with the BLAS in C of the GNU Scientific Library, from Debian's sources too.
import { copyFileSync, cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CACHE, must, once } from './c-build.mjs';
import { debianSource } from './debian-source.mjs';
import { pool } from './mpich-suite.mjs';

/** The BLAS in C, as a library. */
function makeBlas(kind, gsl) {
  return once(kind, 'blas', async (folder, { cc, ar }) => {
    mkdirSync(join(folder, 'gsl'), { recursive: true });
    // What its configure and its make would do for this one folder.
    writeFileSync(join(folder, 'config.h'), '#define HAVE_INLINE 1\n');
    for (const part of ['', 'sys', 'cblas'])
      for (const name of readdirSync(join(gsl, part)).filter((file) => /^gsl_.*\.h$/.test(file)))
        copyFileSync(join(gsl, part, name), join(folder, 'gsl', name));
    const sources = readdirSync(join(gsl, 'cblas')).filter((name) => /^(d|id|xerbla|hypot)\w*\.c$/.test(name));
    const objects = await pool(sources, 2, async (name) => {
      const object = join(folder, name.replace(/c$/, 'o'));
      await must(cc, ['-O3', '-w', `-I${folder}`, '-c', join(gsl, 'cblas', name), '-o', object], folder);
      return object;
    });
    await must(ar, ['rcs', join(folder, 'libgslcblas.a'), ...objects], folder);
  });
}

/** HPL's file of settings: the compiler, the archiver and the BLAS. */
const settings = ({ cc, ar }, blas) => `SHELL = /bin/sh
CD = cd
CP = cp
LN_S = ln -s
MKDIR = mkdir
RM = /bin/rm -f
TOUCH = touch
ARCH = $(arch)
TOPdir = ../../..
INCdir = $(TOPdir)/include
BINdir = $(TOPdir)/bin/$(ARCH)
LIBdir = $(TOPdir)/lib/$(ARCH)
HPLlib = $(LIBdir)/libhpl.a
LAlib = ${join(blas, 'libgslcblas.a')}
HPL_INCLUDES = -I$(INCdir) -I$(INCdir)/$(ARCH)
HPL_LIBS = $(HPLlib) $(LAlib) -lm
HPL_OPTS = -DHPL_CALL_CBLAS
HPL_DEFS = $(HPL_OPTS) $(HPL_INCLUDES)
CC = ${cc}
CCNOOPT = $(HPL_DEFS) -w
CCFLAGS = $(HPL_DEFS) -O3 -w
LINKER = ${cc}
LINKFLAGS = $(CCFLAGS)
ARCHIVER = ${ar}
ARFLAGS = r
RANLIB = ${ar} s
`;

/** Builds it with the compilers of that kind, once. Gives the folder that has the program `hpcc`, or why there is none. */
export async function buildHpcc(kind) {
  const [hpcc, gsl] = [await debianSource(CACHE, 'hpcc'), await debianSource(CACHE, 'gsl')];
  const why = hpcc.why ?? gsl.why;
  if (why !== undefined) return { why };
  const blas = await makeBlas(kind, gsl.folder);
  const folder = await once(kind, 'hpcc', async (top, tools) => {
    cpSync(hpcc.folder, top, { recursive: true });
    writeFileSync(join(top, 'hpl/Make.multirail'), settings(tools, blas));
    await must('make', ['-j2', 'arch=multirail'], top);
  });
  return { folder };
}

/** Its input, with another size, and a grid for so many ranks. */
export function hpccInput(folder, { ranks, size }) {
  let rows = Math.floor(Math.sqrt(ranks));
  while (ranks % rows !== 0) rows--;
  const values = [
    [/^\d+(\s+Ns)$/m, size],
    [/^\d+(\s+Ps)$/m, rows],
    [/^\d+(\s+Qs)$/m, ranks / rows],
  ];
  return values.reduce((text, [line, value]) => text.replace(line, `${value}$1`), readFileSync(join(folder, '_hpccinf.txt'), 'utf8'));
}
