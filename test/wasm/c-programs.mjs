// Programs of C and C++ that Debian does not have: where their authors publish them, how they are built, unedited but for the compiler's name, and
// what their output must say. Nothing of them is kept in this repository.
import { copyFileSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import process from 'node:process';
import { must, once } from './c-build.mjs';

/** With its lines replaced where they set one of these variables of make. */
const withSettings = (text, settings) =>
  Object.entries(settings).reduce((sum, [name, value]) => sum.replace(new RegExp(`^${name}\\s*=.*$`, 'm'), `${name} = ${value}`), text);

const all = (text, pattern) => [...text.matchAll(pattern)].map((match) => match[0].trim());
const fileOf = (folder, pattern) => {
  const name = readdirSync(folder).find((file) => pattern.test(file));
  return name === undefined ? '' : readFileSync(join(folder, name), 'utf8');
};

/** Lines of the table of energies, without how long each took. */
const energies = (output) =>
  all(output, /^ +\d+ +[\d.]+( +-?\d+\.\d{12}){3} +[\d.]+ +[\d.]+ +\d+$/gm).map((line) => line.replace(/ +[\d.]+ +(\d+)$/, ' $1'));
const comd = (what, args) => ({
  what,
  ranks: 4,
  program: 'bin/CoMD-mpi',
  args: (folder) => [...['-i', '2', '-j', '2', '-k', '1', '-x', '16', '-y', '16', '-z', '16', '-N', '60', '-n', '10'], ...args(folder)],
  results: energies,
  isRight: (output) => energies(output).length === 7 && /no atoms lost/.test(output) && /eFinal\/eInitial : (1\.0000|0\.9999)/.test(output),
  hasDigitsOfNative: true,
});

const hpcgSummary = (folder) => fileOf(folder, /^HPCG-Benchmark.*\.(txt|yaml)$/);
const hpcgResults = (folder) =>
  all(
    hpcgSummary(folder),
    /^(Iteration Count Information|Spectral Convergence Tests|Departure from Symmetry.*|Reproducibility Information)::.*$/gm,
  );

const verified = (what, program, ranks, args = []) => ({
  what,
  ranks,
  program,
  args: () => args,
  results: (output) => all(output, /^.*(Verification|L2 Norm).*$/gm),
  isRight: (output) => /Verification\s*=\s*SUCCESSFUL/.test(output),
});

/** Rows of a size, a time or rate above zero, and what else there is (how much was overlapped may be 0). */
const osuRows = (output) => all(output, /^\d+( +[\d.]+)+$/gm).filter((line) => Number(line.split(/ +/)[1]) > 0);
const osu = (path, ranks, rows, args = []) => ({
  what: basename(path),
  ranks,
  program: path,
  args: () => args,
  isRight: (output) => osuRows(output).length >= rows,
});
const OSU_SHORT = ['-m', '65536', '-i', '20', '-x', '5'];
const OSU_COLLECTIVES = [
  ...['allgather', 'allgatherv', 'allreduce', 'alltoall', 'alltoallv', 'bcast', 'gather', 'gatherv', 'reduce', 'reduce_scatter', 'scatter'],
  ...[
    'scatterv',
    'iallgather',
    'iallgatherv',
    'ialltoall',
    'ialltoallv',
    'ialltoallw',
    'ibcast',
    'igather',
    'igatherv',
    'iscatter',
    'iscatterv',
  ],
];

/**
 * folder: its name below that of all sources; parts: folders in it that are needed, where not all are. build(): in a copy. jobs: runs of its
 * programs, each with what its output must say (isRight), and what is to be the same in each run of the same kind (results, given the output and the
 * folder in which it ran). Where hasDigitsOfNative is set, it is to be the same as natively, too; elsewhere sums may be added up in another order.
 */
export const PROGRAMS = [
  {
    name: 'CoMD',
    folder: 'CoMD',
    repository: 'https://github.com/ECP-copa/CoMD',
    commit: '3d48396b77ca8caa3124bc2391f9139c3ffb556c',
    async build(folder, { cc }) {
      copyFileSync(join(folder, 'src-mpi/Makefile.vanilla'), join(folder, 'src-mpi/Makefile'));
      await must('make', ['-j2', `CC=${cc}`], join(folder, 'src-mpi'));
    },
    jobs: [comd('Lennard-Jones', () => []), comd('embedded atoms', (folder) => ['-e', '-d', join(folder, 'pots')])],
  },
  {
    name: 'miniFE',
    folder: 'miniFE',
    repository: 'https://github.com/Mantevo/miniFE',
    commit: 'c79e0f7f7afdd6c8191936efce7a668316159cc3',
    parts: ['ref'],
    build: (folder, { cc, cxx }) => must('make', [`CC=${cc}`, `CXX=${cxx}`], join(folder, 'ref/src')),
    jobs: [
      {
        what: 'conjugate gradients on 30 × 30 × 30 elements',
        ranks: 4,
        program: 'ref/src/miniFE.x',
        args: () => ['nx=30', 'verify_solution=1'],
        results: (output) => all(output, /^.*((Initial|Iteration = \d+ +) *Residual|Final Resid Norm).*$/gm),
        isRight: (output) => /solution matches analytic solution to within/.test(output) && /Final Resid Norm/.test(output),
      },
    ],
  },
  {
    name: 'HPCG',
    folder: 'hpcg',
    repository: 'https://github.com/hpcg-benchmark/hpcg',
    commit: '114602d458d1034faa52b71e4c15aba9b3a17698',
    async build(folder, { cxx, ar }) {
      const settings = readFileSync(join(folder, 'setup/Make.Linux_MPI'), 'utf8');
      const ours = { CXX: cxx, CXXFLAGS: '$(HPCG_DEFS) -O3', ARCHIVER: ar };
      writeFileSync(join(folder, 'setup/Make.here'), withSettings(settings, ours));
      mkdirSync(join(folder, 'build'));
      await must('../configure', ['here'], join(folder, 'build'));
      await must('make', ['-j2'], join(folder, 'build'));
    },
    jobs: [
      {
        what: 'multigrid on 16 × 16 × 16 a rank',
        ranks: 4,
        program: 'build/bin/xhpcg',
        args: () => ['--nx=16', '--ny=16', '--nz=16'],
        results: (_, folder) => hpcgResults(folder),
        isRight(_, folder) {
          const summary = hpcgSummary(folder);
          return /^Final Summary::(HPCG result is VALID|Results are valid)/m.test(summary) && !/FAILED|INVALID/.test(summary);
        },
      },
    ],
  },
  {
    name: 'NPB',
    folder: 'nas-parallel-benchmarks',
    repository: 'https://github.com/mbdevpl/nas-parallel-benchmarks',
    commit: '6f8ec75d6951629d2eb7e3001433295d407230aa',
    parts: ['NPB3.4-MPI'],
    async build(folder, { cc }) {
      const top = join(folder, 'NPB3.4-MPI');
      const settings = readFileSync(join(top, 'config/make.def.template'), 'utf8');
      writeFileSync(join(top, 'config/make.def'), withSettings(settings, { MPICC: cc }));
      mkdirSync(join(top, 'bin'), { recursive: true });
      for (const [name, size] of [
        ['IS', 'A'],
        ['DT', 'S'],
      ])
        await must('make', [name, `CLASS=${size}`], top);
    },
    jobs: [
      verified('IS, class A', 'NPB3.4-MPI/bin/is.A.x', 4),
      verified('DT, class S, black hole', 'NPB3.4-MPI/bin/dt.S.x', 5, ['BH']),
      verified('DT, class S, white hole', 'NPB3.4-MPI/bin/dt.S.x', 5, ['WH']),
      verified('DT, class S, shuffle', 'NPB3.4-MPI/bin/dt.S.x', 12, ['SH']),
    ],
  },
  {
    name: 'OSU',
    folder: 'osu-micro-benchmarks',
    repository: 'https://github.com/forresti/osu-micro-benchmarks',
    commit: '993f966d750386dd813a3d970b83c7c4938bb926',
    async build(folder, { cc, cxx, ar, ranlib }) {
      // What a checkout has made in any order is as old as it is in a release: else make would call automake.
      const made = ['configure.ac', 'aclocal.m4', 'configure', 'Makefile.in'];
      const now = Date.now() / 1000;
      const touch = (path, age) => existsSync(path) && utimesSync(path, now - age, now - age);
      for (const part of ['', 'mpi', 'mpi/pt2pt', 'mpi/startup', 'mpi/one-sided', 'mpi/collective', 'openshmem', 'upc', 'upcxx']) {
        touch(join(folder, part, 'Makefile.am'), 60);
        for (const [i, name] of made.entries()) touch(join(folder, part, name), 50 - 10 * i);
      }
      await must(
        './configure',
        [`CC=${cc}`, `CXX=${cxx}`, `AR=${ar}`, `RANLIB=${ranlib}`, 'cross_compiling=yes', '--disable-shared'],
        folder,
      );
      await must('make', ['-j2'], folder);
    },
    jobs: [
      osu('mpi/pt2pt/osu_latency', 2, 23),
      osu('mpi/pt2pt/osu_bw', 2, 22),
      osu('mpi/pt2pt/osu_bibw', 2, 22),
      osu('mpi/pt2pt/osu_multi_lat', 4, 23),
      osu('mpi/pt2pt/osu_mbw_mr', 4, 22),
      ...OSU_COLLECTIVES.map((name) => osu(`mpi/collective/osu_${name}`, 4, 10, OSU_SHORT)),
      ...['barrier', 'ibarrier'].map((name) => ({
        ...osu(`mpi/collective/osu_${name}`, 4, 0, ['-i', '100', '-x', '10']),
        isRight: (output) => /^ *[\d.]+/m.test(output),
      })),
      { ...osu('mpi/startup/osu_init', 4, 0), isRight: (output) => /avg: \d+/.test(output) },
      { ...osu('mpi/startup/osu_hello', 4, 0), isRight: () => true },
    ],
  },
];

/** Where the sources of all programs are. */
const sources = process.env.MULTIRAIL_C_SOURCES;

/** Why the source of a program is not there, and how to get it; undefined: it is. */
export function lackOf({ repository, commit, folder }) {
  if (sources !== undefined && existsSync(join(sources, folder))) return undefined;
  const why = sources === undefined ? 'MULTIRAIL_C_SOURCES names no folder of sources' : `it is not in ${sources}`;
  return `${why}: git clone ${repository} ${folder} && git -C ${folder} checkout ${commit.slice(0, 12)}`;
}

/** Copies what is needed of the source, without its history, and builds it in the copy, once. Gives the folder of the copy. */
export function buildProgram(kind, program) {
  return once(kind, program.folder, async (folder, tools) => {
    for (const part of program.parts ?? ['.'])
      cpSync(join(sources, program.folder, part), join(folder, part), { recursive: true, filter: (path) => basename(path) !== '.git' });
    await program.build(folder, tools);
  });
}
