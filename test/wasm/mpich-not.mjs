// Entries of MPICH's lists that do not apply here, each with its reason. All others pass.

const SESSIONS = 'needs sessions';
const CANCEL = 'needs MPI_Cancel of a send, which goes on here (MPI-4.1, 3.8.4 allows only the wait to be local)';
const REMOVED = 'needs MPI_LB and MPI_UB, which MPI 3.0 has removed';
const BIG = 'needs more memory than a test may take';

const BY_NAME = {
  'attr/keyval_double_free_win': 'needs one-sided windows',
  'comm/ctxalloc':
    'makes 200,000 communicators with one leader: no id is used twice in a job, so that late copies are known, and each process has 131,070 to give',
  'comm/ic1': SESSIONS,
  'comm/ic2': SESSIONS,
  'datatype/contents': 'needs combiners of Fortran that MPI 3.0 has removed (MPI_COMBINER_HVECTOR_INTEGER)',
  'datatype/lbub_oldapi': REMOVED,
  'datatype/struct_no_real_types': REMOVED,
  'datatype/typename_oldapi': REMOVED,
  'datatype/pack_external': 'has a switch over handles, which are pointers in the ABI of MPI 5.0',
  'datatype/typename': 'demands MPI_INTEGER16, which no compiler for wasm32 has',
  'errhan/adderr': "needs MPICH's own MPIX_Delete_error_class",
  'init/timeout': "needs MPIEXEC_TIMEOUT of MPICH's own mpiexec",
  'init/session': SESSIONS,
  'init/session_mult_init': SESSIONS,
  'init/session_psets': SESSIONS,
  'init/session_self': SESSIONS,
  'part/multipart': 'partitioned sends of one tag match here in the order in which they become ready, and not in that of MPI_Psend_init',
  'part/nonblocking_pready': 'sends with MPI_DATATYPE_NULL, which is an error here',
  'pt2pt/scancel': CANCEL,
  'pt2pt/pscancel': CANCEL,
  'pt2pt/scancel_unmatch': CANCEL,
  'pt2pt/cancelrecv': CANCEL,
  'topo/cartsuball':
    'demands MPI_COMM_NULL of all ranks but 0 for a grid without dimensions, where MPI gives each process a grid of its own',
};

/** Why an entry does not apply; undefined: it does. */
export function notApplicable({ folder, name, memory }) {
  return BY_NAME[`${folder}/${name}`] ?? (memory > 0 ? BIG : undefined);
}
