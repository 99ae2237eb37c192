/*
 * mpi.h of multirail: C and C++ programs compiled to WebAssembly call MPI through imports of the module `mpi`.
 *
 * Values of constants and handles, and the layout of MPI_Status, are those of the ABI chapter of MPI 5.0. Prototypes have no names of
 * parameters: the standard names them. mpi_calls.h holds the calls that exist twice, with counts of int and, as MPI_..._c, of MPI_Count.
 */
#ifndef MPI_H_ABI
#define MPI_H_ABI

#include <stdint.h>

#define MULTIRAIL 1
#define MPI_VERSION 4
#define MPI_SUBVERSION 1
#define MPI_ABI_VERSION 1
#define MPI_ABI_SUBVERSION 0

#ifdef __cplusplus
extern "C" {
#endif

typedef intptr_t MPI_Aint;
typedef int64_t MPI_Offset;
typedef int64_t MPI_Count;
typedef int MPI_Fint;

typedef struct {
  int MPI_SOURCE;
  int MPI_TAG;
  int MPI_ERROR;
  int MPI_internal[5];
} MPI_Status;

typedef struct MPI_ABI_Comm *MPI_Comm;
typedef struct MPI_ABI_Datatype *MPI_Datatype;
typedef struct MPI_ABI_Errhandler *MPI_Errhandler;
typedef struct MPI_ABI_File *MPI_File;
typedef struct MPI_ABI_Group *MPI_Group;
typedef struct MPI_ABI_Info *MPI_Info;
typedef struct MPI_ABI_Message *MPI_Message;
typedef struct MPI_ABI_Op *MPI_Op;
typedef struct MPI_ABI_Request *MPI_Request;
typedef struct MPI_ABI_Session *MPI_Session;
typedef struct MPI_ABI_Win *MPI_Win;

#define MPI_OP_NULL ((MPI_Op)0x20)
#define MPI_SUM ((MPI_Op)0x21)
#define MPI_MIN ((MPI_Op)0x22)
#define MPI_MAX ((MPI_Op)0x23)
#define MPI_PROD ((MPI_Op)0x24)
#define MPI_BAND ((MPI_Op)0x28)
#define MPI_BOR ((MPI_Op)0x29)
#define MPI_BXOR ((MPI_Op)0x2a)
#define MPI_LAND ((MPI_Op)0x30)
#define MPI_LOR ((MPI_Op)0x31)
#define MPI_LXOR ((MPI_Op)0x32)
#define MPI_MINLOC ((MPI_Op)0x38)
#define MPI_MAXLOC ((MPI_Op)0x39)
#define MPI_REPLACE ((MPI_Op)0x3c)
#define MPI_NO_OP ((MPI_Op)0x3d)

#define MPI_COMM_NULL ((MPI_Comm)0x100)
#define MPI_COMM_WORLD ((MPI_Comm)0x101)
#define MPI_COMM_SELF ((MPI_Comm)0x102)
#define MPI_GROUP_NULL ((MPI_Group)0x108)
#define MPI_GROUP_EMPTY ((MPI_Group)0x109)
#define MPI_WIN_NULL ((MPI_Win)0x110)
#define MPI_FILE_NULL ((MPI_File)0x118)
#define MPI_SESSION_NULL ((MPI_Session)0x120)
#define MPI_MESSAGE_NULL ((MPI_Message)0x128)
#define MPI_MESSAGE_NO_PROC ((MPI_Message)0x129)
#define MPI_INFO_NULL ((MPI_Info)0x130)
#define MPI_INFO_ENV ((MPI_Info)0x131)
#define MPI_ERRHANDLER_NULL ((MPI_Errhandler)0x140)
#define MPI_ERRORS_ARE_FATAL ((MPI_Errhandler)0x141)
#define MPI_ERRORS_ABORT ((MPI_Errhandler)0x142)
#define MPI_ERRORS_RETURN ((MPI_Errhandler)0x143)
#define MPI_REQUEST_NULL ((MPI_Request)0x180)

#define MPI_DATATYPE_NULL ((MPI_Datatype)0x200)
#define MPI_AINT ((MPI_Datatype)0x201)
#define MPI_COUNT ((MPI_Datatype)0x202)
#define MPI_OFFSET ((MPI_Datatype)0x203)
#define MPI_PACKED ((MPI_Datatype)0x207)
#define MPI_SHORT ((MPI_Datatype)0x208)
#define MPI_INT ((MPI_Datatype)0x209)
#define MPI_LONG ((MPI_Datatype)0x20a)
#define MPI_LONG_LONG ((MPI_Datatype)0x20b)
#define MPI_LONG_LONG_INT MPI_LONG_LONG
#define MPI_UNSIGNED_SHORT ((MPI_Datatype)0x20c)
#define MPI_UNSIGNED ((MPI_Datatype)0x20d)
#define MPI_UNSIGNED_LONG ((MPI_Datatype)0x20e)
#define MPI_UNSIGNED_LONG_LONG ((MPI_Datatype)0x20f)
#define MPI_FLOAT ((MPI_Datatype)0x210)
#define MPI_C_FLOAT_COMPLEX ((MPI_Datatype)0x212)
#define MPI_C_COMPLEX MPI_C_FLOAT_COMPLEX
#define MPI_CXX_FLOAT_COMPLEX ((MPI_Datatype)0x213)
#define MPI_DOUBLE ((MPI_Datatype)0x214)
#define MPI_C_DOUBLE_COMPLEX ((MPI_Datatype)0x216)
#define MPI_CXX_DOUBLE_COMPLEX ((MPI_Datatype)0x217)
#define MPI_LOGICAL ((MPI_Datatype)0x218)
#define MPI_INTEGER ((MPI_Datatype)0x219)
#define MPI_REAL ((MPI_Datatype)0x21a)
#define MPI_COMPLEX ((MPI_Datatype)0x21b)
#define MPI_DOUBLE_PRECISION ((MPI_Datatype)0x21c)
#define MPI_DOUBLE_COMPLEX ((MPI_Datatype)0x21d)
#define MPI_CHARACTER ((MPI_Datatype)0x21e)
#define MPI_LONG_DOUBLE ((MPI_Datatype)0x220)
#define MPI_C_LONG_DOUBLE_COMPLEX ((MPI_Datatype)0x224)
#define MPI_CXX_LONG_DOUBLE_COMPLEX ((MPI_Datatype)0x225)
#define MPI_FLOAT_INT ((MPI_Datatype)0x228)
#define MPI_DOUBLE_INT ((MPI_Datatype)0x229)
#define MPI_LONG_INT ((MPI_Datatype)0x22a)
#define MPI_2INT ((MPI_Datatype)0x22b)
#define MPI_SHORT_INT ((MPI_Datatype)0x22c)
#define MPI_LONG_DOUBLE_INT ((MPI_Datatype)0x22d)
#define MPI_2REAL ((MPI_Datatype)0x230)
#define MPI_2DOUBLE_PRECISION ((MPI_Datatype)0x231)
#define MPI_2INTEGER ((MPI_Datatype)0x232)
#define MPI_C_BOOL ((MPI_Datatype)0x238)
#define MPI_CXX_BOOL ((MPI_Datatype)0x239)
#define MPI_WCHAR ((MPI_Datatype)0x23c)
#define MPI_INT8_T ((MPI_Datatype)0x240)
#define MPI_UINT8_T ((MPI_Datatype)0x241)
#define MPI_CHAR ((MPI_Datatype)0x243)
#define MPI_SIGNED_CHAR ((MPI_Datatype)0x244)
#define MPI_UNSIGNED_CHAR ((MPI_Datatype)0x245)
#define MPI_BYTE ((MPI_Datatype)0x247)
#define MPI_INT16_T ((MPI_Datatype)0x248)
#define MPI_UINT16_T ((MPI_Datatype)0x249)
#define MPI_INT32_T ((MPI_Datatype)0x250)
#define MPI_UINT32_T ((MPI_Datatype)0x251)
#define MPI_INT64_T ((MPI_Datatype)0x258)
#define MPI_UINT64_T ((MPI_Datatype)0x259)
#define MPI_LOGICAL1 ((MPI_Datatype)0x2c0)
#define MPI_INTEGER1 ((MPI_Datatype)0x2c1)
#define MPI_INTEGER2 ((MPI_Datatype)0x2c9)
#define MPI_LOGICAL4 ((MPI_Datatype)0x2d0)
#define MPI_INTEGER4 ((MPI_Datatype)0x2d1)
#define MPI_REAL4 ((MPI_Datatype)0x2d2)
#define MPI_INTEGER8 ((MPI_Datatype)0x2d9)
#define MPI_REAL8 ((MPI_Datatype)0x2da)
#define MPI_COMPLEX8 ((MPI_Datatype)0x2db)
#define MPI_REAL16 ((MPI_Datatype)0x2e2)
#define MPI_COMPLEX16 ((MPI_Datatype)0x2e3)
#define MPI_COMPLEX32 ((MPI_Datatype)0x2eb)

enum {
  MPI_SUCCESS = 0,
  MPI_ERR_BUFFER = 1,
  MPI_ERR_COUNT = 2,
  MPI_ERR_TYPE = 3,
  MPI_ERR_TAG = 4,
  MPI_ERR_COMM = 5,
  MPI_ERR_RANK = 6,
  MPI_ERR_REQUEST = 7,
  MPI_ERR_ROOT = 8,
  MPI_ERR_GROUP = 9,
  MPI_ERR_OP = 10,
  MPI_ERR_TOPOLOGY = 11,
  MPI_ERR_DIMS = 12,
  MPI_ERR_ARG = 13,
  MPI_ERR_UNKNOWN = 14,
  MPI_ERR_TRUNCATE = 15,
  MPI_ERR_OTHER = 16,
  MPI_ERR_INTERN = 17,
  MPI_ERR_PENDING = 18,
  MPI_ERR_IN_STATUS = 19,
  MPI_ERR_ACCESS = 20,
  MPI_ERR_AMODE = 21,
  MPI_ERR_ASSERT = 22,
  MPI_ERR_BAD_FILE = 23,
  MPI_ERR_BASE = 24,
  MPI_ERR_CONVERSION = 25,
  MPI_ERR_DISP = 26,
  MPI_ERR_DUP_DATAREP = 27,
  MPI_ERR_FILE_EXISTS = 28,
  MPI_ERR_FILE_IN_USE = 29,
  MPI_ERR_FILE = 30,
  MPI_ERR_INFO_KEY = 31,
  MPI_ERR_INFO_NOKEY = 32,
  MPI_ERR_INFO_VALUE = 33,
  MPI_ERR_INFO = 34,
  MPI_ERR_IO = 35,
  MPI_ERR_KEYVAL = 36,
  MPI_ERR_LOCKTYPE = 37,
  MPI_ERR_NAME = 38,
  MPI_ERR_NO_MEM = 39,
  MPI_ERR_NOT_SAME = 40,
  MPI_ERR_NO_SPACE = 41,
  MPI_ERR_NO_SUCH_FILE = 42,
  MPI_ERR_PORT = 43,
  MPI_ERR_QUOTA = 44,
  MPI_ERR_READ_ONLY = 45,
  MPI_ERR_RMA_ATTACH = 46,
  MPI_ERR_RMA_CONFLICT = 47,
  MPI_ERR_RMA_RANGE = 48,
  MPI_ERR_RMA_SHARED = 49,
  MPI_ERR_RMA_SYNC = 50,
  MPI_ERR_SERVICE = 51,
  MPI_ERR_SIZE = 52,
  MPI_ERR_SPAWN = 53,
  MPI_ERR_UNSUPPORTED_DATAREP = 54,
  MPI_ERR_UNSUPPORTED_OPERATION = 55,
  MPI_ERR_WIN = 56,
  MPI_ERR_RMA_FLAVOR = 57,
  MPI_ERR_PROC_ABORTED = 58,
  MPI_ERR_VALUE_TOO_LARGE = 59,
  MPI_ERR_SESSION = 60,
  MPI_ERR_ERRHANDLER = 61,
  MPI_ERR_ABI = 62,
  MPIX_ERR_PROC_FAILED = 101,
  MPIX_ERR_PROC_FAILED_PENDING = 102,
  MPIX_ERR_REVOKED = 103,
  MPI_T_ERR_CANNOT_INIT = 1001,
  MPI_T_ERR_NOT_ACCESSIBLE = 1002,
  MPI_T_ERR_NOT_INITIALIZED = 1003,
  MPI_T_ERR_NOT_SUPPORTED = 1004,
  MPI_ERR_LASTCODE = 16383
};

#define MPI_BOTTOM ((void *)0)
#define MPI_IN_PLACE ((void *)1)
#define MPI_BUFFER_AUTOMATIC ((void *)2)
#define MPI_ARGV_NULL ((char **)0)
#define MPI_ARGVS_NULL ((char ***)0)
#define MPI_ERRCODES_IGNORE ((int *)0)
#define MPI_STATUS_IGNORE ((MPI_Status *)0)
#define MPI_STATUSES_IGNORE ((MPI_Status *)0)
#define MPI_UNWEIGHTED ((int *)10)
#define MPI_WEIGHTS_EMPTY ((int *)11)

#define MPI_MAX_DATAREP_STRING 128
#define MPI_MAX_ERROR_STRING 512
#define MPI_MAX_INFO_KEY 256
#define MPI_MAX_INFO_VAL 1024
#define MPI_MAX_LIBRARY_VERSION_STRING 8192
#define MPI_MAX_OBJECT_NAME 128
#define MPI_MAX_PORT_NAME 1024
#define MPI_MAX_PROCESSOR_NAME 256
#define MPI_MAX_STRINGTAG_LEN 1024
#define MPI_MAX_PSET_NAME_LEN 1024
#define MPI_BSEND_OVERHEAD 512

enum {
  MPI_ANY_SOURCE = -1,
  MPI_ANY_TAG = -2,
  MPI_PROC_NULL = -3,
  MPI_ROOT = -4,
  MPI_UNDEFINED = -32766
};
enum { MPI_THREAD_SINGLE = 0, MPI_THREAD_FUNNELED = 1024, MPI_THREAD_SERIALIZED = 2048, MPI_THREAD_MULTIPLE = 4096 };
enum { MPI_ORDER_C = 12, MPI_ORDER_FORTRAN = 15 };
enum { MPI_DISTRIBUTE_NONE = 16, MPI_DISTRIBUTE_BLOCK = 17, MPI_DISTRIBUTE_CYCLIC = 18, MPI_DISTRIBUTE_DFLT_DARG = 19 };
enum {
  MPI_COMBINER_NAMED = 101,
  MPI_COMBINER_DUP = 102,
  MPI_COMBINER_CONTIGUOUS = 103,
  MPI_COMBINER_VECTOR = 104,
  MPI_COMBINER_HVECTOR = 105,
  MPI_COMBINER_INDEXED = 106,
  MPI_COMBINER_HINDEXED = 107,
  MPI_COMBINER_INDEXED_BLOCK = 108,
  MPI_COMBINER_HINDEXED_BLOCK = 109,
  MPI_COMBINER_STRUCT = 110,
  MPI_COMBINER_SUBARRAY = 111,
  MPI_COMBINER_DARRAY = 112,
  MPI_COMBINER_F90_REAL = 113,
  MPI_COMBINER_F90_COMPLEX = 114,
  MPI_COMBINER_F90_INTEGER = 115,
  MPI_COMBINER_RESIZED = 116,
  MPI_COMBINER_VALUE_INDEX = 117
};
enum { MPI_TYPECLASS_INTEGER = 192, MPI_TYPECLASS_REAL = 193, MPI_TYPECLASS_COMPLEX = 194 };
enum { MPI_IDENT = 201, MPI_CONGRUENT = 202, MPI_SIMILAR = 203, MPI_UNEQUAL = 204 };
enum { MPI_CART = 211, MPI_GRAPH = 212, MPI_DIST_GRAPH = 213 };
enum {
  MPI_COMM_TYPE_SHARED = 221,
  MPI_COMM_TYPE_HW_UNGUIDED = 222,
  MPI_COMM_TYPE_HW_GUIDED = 223,
  MPI_COMM_TYPE_RESOURCE_GUIDED = 224
};
enum {
  MPI_KEYVAL_INVALID = 0,
  MPI_TAG_UB = 501,
  MPI_IO = 502,
  MPI_HOST = 503,
  MPI_WTIME_IS_GLOBAL = 504,
  MPI_APPNUM = 505,
  MPI_LASTUSEDCODE = 506,
  MPI_UNIVERSE_SIZE = 507
};

typedef void(MPI_User_function)(void *, void *, int *, MPI_Datatype *);
typedef void(MPI_User_function_c)(void *, void *, MPI_Count *, MPI_Datatype *);
typedef int(MPI_Grequest_query_function)(void *, MPI_Status *);
typedef int(MPI_Grequest_free_function)(void *);
typedef int(MPI_Grequest_cancel_function)(void *, int);
typedef int(MPI_Copy_function)(MPI_Comm, int, void *, void *, void *, int *);
typedef int(MPI_Delete_function)(MPI_Comm, int, void *, void *);
typedef int(MPI_Comm_copy_attr_function)(MPI_Comm, int, void *, void *, void *, int *);
typedef int(MPI_Comm_delete_attr_function)(MPI_Comm, int, void *, void *);
typedef int(MPI_Type_copy_attr_function)(MPI_Datatype, int, void *, void *, void *, int *);
typedef int(MPI_Type_delete_attr_function)(MPI_Datatype, int, void *, void *);
typedef int(MPI_Win_copy_attr_function)(MPI_Win, int, void *, void *, void *, int *);
typedef int(MPI_Win_delete_attr_function)(MPI_Win, int, void *, void *);
typedef void(MPI_Comm_errhandler_function)(MPI_Comm *, int *, ...);
typedef void(MPI_File_errhandler_function)(MPI_File *, int *, ...);
typedef void(MPI_Win_errhandler_function)(MPI_Win *, int *, ...);
typedef MPI_Comm_errhandler_function MPI_Comm_errhandler_fn;
typedef MPI_Comm_errhandler_function MPI_Handler_function;

#define MPI_NULL_COPY_FN ((MPI_Copy_function *)0)
#define MPI_DUP_FN ((MPI_Copy_function *)1)
#define MPI_NULL_DELETE_FN ((MPI_Delete_function *)0)
#define MPI_COMM_NULL_COPY_FN ((MPI_Comm_copy_attr_function *)0)
#define MPI_COMM_DUP_FN ((MPI_Comm_copy_attr_function *)1)
#define MPI_COMM_NULL_DELETE_FN ((MPI_Comm_delete_attr_function *)0)
#define MPI_TYPE_NULL_COPY_FN ((MPI_Type_copy_attr_function *)0)
#define MPI_TYPE_DUP_FN ((MPI_Type_copy_attr_function *)1)
#define MPI_TYPE_NULL_DELETE_FN ((MPI_Type_delete_attr_function *)0)
#define MPI_WIN_NULL_COPY_FN ((MPI_Win_copy_attr_function *)0)
#define MPI_WIN_DUP_FN ((MPI_Win_copy_attr_function *)1)
#define MPI_WIN_NULL_DELETE_FN ((MPI_Win_delete_attr_function *)0)

/* A tool may define MPI_... itself and call PMPI_...: both are there, as one import. */
#define MPI_IMPORTED(name) __attribute__((import_module("mpi"), import_name(name)))
#define MPI_AS(type, name, args)                  \
  type MPI_##name args MPI_IMPORTED("MPI_" #name); \
  type PMPI_##name args MPI_IMPORTED("MPI_" #name);
#define MPI_F(name, args) MPI_AS(int, name, args)

#define MPI_N int
#define MPI_DISPL int
#define MPI_BYTES MPI_Aint
#define MPI_SIZED(name, args) MPI_F(name, args)
#include "mpi_calls.h"
#undef MPI_N
#undef MPI_DISPL
#undef MPI_BYTES
#undef MPI_SIZED
#define MPI_N MPI_Count
#define MPI_DISPL MPI_Aint
#define MPI_BYTES MPI_Count
#define MPI_SIZED(name, args) MPI_F(name##_c, args)
#include "mpi_calls.h"
#undef MPI_N
#undef MPI_DISPL
#undef MPI_BYTES
#undef MPI_SIZED

/* The environment. */
MPI_F(Init, (int *, char ***))
MPI_F(Init_thread, (int *, char ***, int, int *))
MPI_F(Initialized, (int *))
MPI_F(Finalize, (void))
MPI_F(Finalized, (int *))
MPI_F(Abort, (MPI_Comm, int))
MPI_F(Query_thread, (int *))
MPI_F(Is_thread_main, (int *))
MPI_AS(double, Wtime, (void))
MPI_AS(double, Wtick, (void))
MPI_F(Get_version, (int *, int *))
MPI_F(Get_library_version, (char *, int *))
MPI_F(Get_processor_name, (char *, int *))
MPI_F(Get_address, (const void *, MPI_Aint *))
MPI_AS(MPI_Aint, Aint_add, (MPI_Aint, MPI_Aint))
MPI_AS(MPI_Aint, Aint_diff, (MPI_Aint, MPI_Aint))
MPI_F(Alloc_mem, (MPI_Aint, MPI_Info, void *))
MPI_F(Free_mem, (void *))
MPI_F(Pcontrol, (const int, ...))
MPI_F(Error_class, (int, int *))
MPI_F(Error_string, (int, char *, int *))
MPI_F(Add_error_class, (int *))
MPI_F(Add_error_code, (int, int *))
MPI_F(Add_error_string, (int, const char *))
MPI_F(Remove_error_class, (int))
MPI_F(Remove_error_code, (int))
MPI_F(Remove_error_string, (int))
MPI_F(Comm_create_errhandler, (MPI_Comm_errhandler_function *, MPI_Errhandler *))
MPI_F(Comm_set_errhandler, (MPI_Comm, MPI_Errhandler))
MPI_F(Comm_get_errhandler, (MPI_Comm, MPI_Errhandler *))
MPI_F(Comm_call_errhandler, (MPI_Comm, int))
MPI_F(Errhandler_free, (MPI_Errhandler *))
MPI_F(File_create_errhandler, (MPI_File_errhandler_function *, MPI_Errhandler *))
MPI_F(Win_create_errhandler, (MPI_Win_errhandler_function *, MPI_Errhandler *))
MPI_F(File_set_errhandler, (MPI_File, MPI_Errhandler))
MPI_F(File_get_errhandler, (MPI_File, MPI_Errhandler *))

/* Messages, requests, statuses. */
MPI_F(Probe, (int, int, MPI_Comm, MPI_Status *))
MPI_F(Iprobe, (int, int, MPI_Comm, int *, MPI_Status *))
MPI_F(Mprobe, (int, int, MPI_Comm, MPI_Message *, MPI_Status *))
MPI_F(Improbe, (int, int, MPI_Comm, int *, MPI_Message *, MPI_Status *))
MPI_F(Start, (MPI_Request *))
MPI_F(Startall, (int, MPI_Request[]))
MPI_F(Wait, (MPI_Request *, MPI_Status *))
MPI_F(Test, (MPI_Request *, int *, MPI_Status *))
MPI_F(Waitall, (int, MPI_Request[], MPI_Status *))
MPI_F(Testall, (int, MPI_Request[], int *, MPI_Status *))
MPI_F(Waitany, (int, MPI_Request[], int *, MPI_Status *))
MPI_F(Testany, (int, MPI_Request[], int *, int *, MPI_Status *))
MPI_F(Waitsome, (int, MPI_Request[], int *, int[], MPI_Status *))
MPI_F(Testsome, (int, MPI_Request[], int *, int[], MPI_Status *))
MPI_F(Request_free, (MPI_Request *))
MPI_F(Request_get_status, (MPI_Request, int *, MPI_Status *))
MPI_F(Cancel, (MPI_Request *))
MPI_F(Test_cancelled, (const MPI_Status *, int *))
MPI_F(Status_set_cancelled, (MPI_Status *, int))
MPI_F(Status_set_elements_x, (MPI_Status *, MPI_Datatype, MPI_Count))
MPI_F(Status_get_source, (const MPI_Status *, int *))
MPI_F(Status_get_tag, (const MPI_Status *, int *))
MPI_F(Status_get_error, (const MPI_Status *, int *))
MPI_F(Status_set_source, (MPI_Status *, int))
MPI_F(Status_set_tag, (MPI_Status *, int))
MPI_F(Status_set_error, (MPI_Status *, int))
MPI_F(Get_elements_x, (const MPI_Status *, MPI_Datatype, MPI_Count *))
MPI_F(Buffer_flush, (void))
MPI_F(Grequest_start,
      (MPI_Grequest_query_function *, MPI_Grequest_free_function *, MPI_Grequest_cancel_function *, void *, MPI_Request *))
MPI_F(Grequest_complete, (MPI_Request))
MPI_F(Psend_init, (const void *, int, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Info, MPI_Request *))
MPI_F(Precv_init, (void *, int, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Info, MPI_Request *))
MPI_F(Pready, (int, MPI_Request))
MPI_F(Pready_range, (int, int, MPI_Request))
MPI_F(Pready_list, (int, const int[], MPI_Request))
MPI_F(Parrived, (MPI_Request, int, int *))

/* Collectives without counts. */
MPI_F(Barrier, (MPI_Comm))
MPI_F(Ibarrier, (MPI_Comm, MPI_Request *))
MPI_F(Barrier_init, (MPI_Comm, MPI_Info, MPI_Request *))
MPI_F(Op_free, (MPI_Op *))
MPI_F(Op_commutative, (MPI_Op, int *))

/* Datatypes. */
MPI_F(Type_commit, (MPI_Datatype *))
MPI_F(Type_free, (MPI_Datatype *))
MPI_F(Type_dup, (MPI_Datatype, MPI_Datatype *))
MPI_F(Type_size_x, (MPI_Datatype, MPI_Count *))
MPI_F(Type_get_extent_x, (MPI_Datatype, MPI_Count *, MPI_Count *))
MPI_F(Type_get_true_extent_x, (MPI_Datatype, MPI_Count *, MPI_Count *))
MPI_F(Type_get_envelope, (MPI_Datatype, int *, int *, int *, int *))
MPI_F(Type_get_envelope_c, (MPI_Datatype, MPI_Count *, MPI_Count *, MPI_Count *, MPI_Count *, int *))
MPI_F(Type_get_contents, (MPI_Datatype, int, int, int, int[], MPI_Aint[], MPI_Datatype[]))
MPI_F(Type_get_contents_c,
      (MPI_Datatype, MPI_Count, MPI_Count, MPI_Count, MPI_Count, int[], MPI_Aint[], MPI_Count[], MPI_Datatype[]))
MPI_F(Type_match_size, (int, int, MPI_Datatype *))
MPI_F(Type_get_value_index, (MPI_Datatype, MPI_Datatype, MPI_Datatype *))
MPI_F(Type_create_f90_real, (int, int, MPI_Datatype *))
MPI_F(Type_create_f90_complex, (int, int, MPI_Datatype *))
MPI_F(Type_create_f90_integer, (int, MPI_Datatype *))
MPI_F(Type_set_name, (MPI_Datatype, const char *))
MPI_F(Type_get_name, (MPI_Datatype, char *, int *))

/* Attributes. */
MPI_F(Comm_create_keyval, (MPI_Comm_copy_attr_function *, MPI_Comm_delete_attr_function *, int *, void *))
MPI_F(Comm_free_keyval, (int *))
MPI_F(Comm_set_attr, (MPI_Comm, int, void *))
MPI_F(Comm_get_attr, (MPI_Comm, int, void *, int *))
MPI_F(Comm_delete_attr, (MPI_Comm, int))
MPI_F(Type_create_keyval, (MPI_Type_copy_attr_function *, MPI_Type_delete_attr_function *, int *, void *))
MPI_F(Type_free_keyval, (int *))
MPI_F(Type_set_attr, (MPI_Datatype, int, void *))
MPI_F(Type_get_attr, (MPI_Datatype, int, void *, int *))
MPI_F(Type_delete_attr, (MPI_Datatype, int))
MPI_F(Win_create_keyval, (MPI_Win_copy_attr_function *, MPI_Win_delete_attr_function *, int *, void *))
MPI_F(Win_free_keyval, (int *))

/* Communicators and groups. */
MPI_F(Comm_rank, (MPI_Comm, int *))
MPI_F(Comm_size, (MPI_Comm, int *))
MPI_F(Comm_group, (MPI_Comm, MPI_Group *))
MPI_F(Comm_compare, (MPI_Comm, MPI_Comm, int *))
MPI_F(Comm_dup, (MPI_Comm, MPI_Comm *))
MPI_F(Comm_dup_with_info, (MPI_Comm, MPI_Info, MPI_Comm *))
MPI_F(Comm_idup, (MPI_Comm, MPI_Comm *, MPI_Request *))
MPI_F(Comm_idup_with_info, (MPI_Comm, MPI_Info, MPI_Comm *, MPI_Request *))
MPI_F(Comm_create, (MPI_Comm, MPI_Group, MPI_Comm *))
MPI_F(Comm_create_group, (MPI_Comm, MPI_Group, int, MPI_Comm *))
MPI_F(Comm_split, (MPI_Comm, int, int, MPI_Comm *))
MPI_F(Comm_split_type, (MPI_Comm, int, int, MPI_Info, MPI_Comm *))
MPI_F(Comm_free, (MPI_Comm *))
MPI_F(Comm_disconnect, (MPI_Comm *))
MPI_F(Comm_set_name, (MPI_Comm, const char *))
MPI_F(Comm_get_name, (MPI_Comm, char *, int *))
MPI_F(Comm_set_info, (MPI_Comm, MPI_Info))
MPI_F(Comm_get_info, (MPI_Comm, MPI_Info *))
MPI_F(Comm_test_inter, (MPI_Comm, int *))
MPI_F(Comm_remote_size, (MPI_Comm, int *))
MPI_F(Comm_remote_group, (MPI_Comm, MPI_Group *))
MPI_F(Intercomm_create, (MPI_Comm, int, MPI_Comm, int, int, MPI_Comm *))
MPI_F(Intercomm_merge, (MPI_Comm, int, MPI_Comm *))
MPI_F(Comm_get_parent, (MPI_Comm *))
MPI_F(Group_size, (MPI_Group, int *))
MPI_F(Group_rank, (MPI_Group, int *))
MPI_F(Group_translate_ranks, (MPI_Group, int, const int[], MPI_Group, int[]))
MPI_F(Group_compare, (MPI_Group, MPI_Group, int *))
MPI_F(Group_union, (MPI_Group, MPI_Group, MPI_Group *))
MPI_F(Group_intersection, (MPI_Group, MPI_Group, MPI_Group *))
MPI_F(Group_difference, (MPI_Group, MPI_Group, MPI_Group *))
MPI_F(Group_incl, (MPI_Group, int, const int[], MPI_Group *))
MPI_F(Group_excl, (MPI_Group, int, const int[], MPI_Group *))
MPI_F(Group_range_incl, (MPI_Group, int, int[][3], MPI_Group *))
MPI_F(Group_range_excl, (MPI_Group, int, int[][3], MPI_Group *))
MPI_F(Group_free, (MPI_Group *))

/* Info. */
MPI_F(Info_create, (MPI_Info *))
MPI_F(Info_create_env, (int, char *[], MPI_Info *))
MPI_F(Info_dup, (MPI_Info, MPI_Info *))
MPI_F(Info_free, (MPI_Info *))
MPI_F(Info_set, (MPI_Info, const char *, const char *))
MPI_F(Info_get, (MPI_Info, const char *, int, char *, int *))
MPI_F(Info_get_string, (MPI_Info, const char *, int *, char *, int *))
MPI_F(Info_get_valuelen, (MPI_Info, const char *, int *, int *))
MPI_F(Info_get_nkeys, (MPI_Info, int *))
MPI_F(Info_get_nthkey, (MPI_Info, int, char *))
MPI_F(Info_delete, (MPI_Info, const char *))

/* Topologies. */
MPI_F(Dims_create, (int, int, int[]))
MPI_F(Topo_test, (MPI_Comm, int *))
MPI_F(Cart_create, (MPI_Comm, int, const int[], const int[], int, MPI_Comm *))
MPI_F(Cartdim_get, (MPI_Comm, int *))
MPI_F(Cart_get, (MPI_Comm, int, int[], int[], int[]))
MPI_F(Cart_rank, (MPI_Comm, const int[], int *))
MPI_F(Cart_coords, (MPI_Comm, int, int, int[]))
MPI_F(Cart_shift, (MPI_Comm, int, int, int *, int *))
MPI_F(Cart_sub, (MPI_Comm, const int[], MPI_Comm *))
MPI_F(Cart_map, (MPI_Comm, int, const int[], const int[], int *))
MPI_F(Graph_create, (MPI_Comm, int, const int[], const int[], int, MPI_Comm *))
MPI_F(Graphdims_get, (MPI_Comm, int *, int *))
MPI_F(Graph_get, (MPI_Comm, int, int, int[], int[]))
MPI_F(Graph_neighbors_count, (MPI_Comm, int, int *))
MPI_F(Graph_neighbors, (MPI_Comm, int, int, int[]))
MPI_F(Graph_map, (MPI_Comm, int, const int[], const int[], int *))
MPI_F(Dist_graph_create, (MPI_Comm, int, const int[], const int[], const int[], const int[], MPI_Info, int, MPI_Comm *))
MPI_F(Dist_graph_create_adjacent,
      (MPI_Comm, int, const int[], const int[], int, const int[], const int[], MPI_Info, int, MPI_Comm *))
MPI_F(Dist_graph_neighbors_count, (MPI_Comm, int *, int *, int *))
MPI_F(Dist_graph_neighbors, (MPI_Comm, int, int[], int[], int, int[], int[]))

/* After failures (User-Level Failure Mitigation). */
#define MPIX_F(name, args) int MPIX_##name args MPI_IMPORTED("MPIX_" #name);
MPIX_F(Comm_revoke, (MPI_Comm))
MPIX_F(Comm_is_revoked, (MPI_Comm, int *))
MPIX_F(Comm_shrink, (MPI_Comm, MPI_Comm *))
MPIX_F(Comm_ishrink, (MPI_Comm, MPI_Comm *, MPI_Request *))
MPIX_F(Comm_agree, (MPI_Comm, int *))
MPIX_F(Comm_iagree, (MPI_Comm, int *, MPI_Request *))
MPIX_F(Comm_get_failed, (MPI_Comm, MPI_Group *))
MPIX_F(Comm_ack_failed, (MPI_Comm, int, int *))
MPIX_F(Comm_failure_ack, (MPI_Comm))
MPIX_F(Comm_failure_get_acked, (MPI_Comm, MPI_Group *))

/* Deprecated or removed since MPI-1, for the programs that still have them. */
MPI_F(Address, (const void *, MPI_Aint *))
MPI_F(Type_hvector, (int, int, MPI_Aint, MPI_Datatype, MPI_Datatype *))
MPI_F(Type_hindexed, (int, const int[], const MPI_Aint[], MPI_Datatype, MPI_Datatype *))
MPI_F(Type_struct, (int, const int[], const MPI_Aint[], const MPI_Datatype[], MPI_Datatype *))
MPI_F(Type_extent, (MPI_Datatype, MPI_Aint *))
MPI_F(Type_lb, (MPI_Datatype, MPI_Aint *))
MPI_F(Type_ub, (MPI_Datatype, MPI_Aint *))
MPI_F(Errhandler_create, (MPI_Comm_errhandler_function *, MPI_Errhandler *))
MPI_F(Errhandler_set, (MPI_Comm, MPI_Errhandler))
MPI_F(Errhandler_get, (MPI_Comm, MPI_Errhandler *))
MPI_F(Keyval_create, (MPI_Copy_function *, MPI_Delete_function *, int *, void *))
MPI_F(Keyval_free, (int *))
MPI_F(Attr_put, (MPI_Comm, int, void *))
MPI_F(Attr_get, (MPI_Comm, int, void *, int *))
MPI_F(Attr_delete, (MPI_Comm, int))

/* Handles as numbers are the handles themselves. */
#define MPI_NUMBERED(type, name)                                                     \
  static inline MPI_Fint MPI_##name##_c2f(type handle) { return (MPI_Fint)handle; }  \
  static inline type MPI_##name##_f2c(MPI_Fint handle) { return (type)handle; }      \
  static inline MPI_Fint PMPI_##name##_c2f(type handle) { return (MPI_Fint)handle; } \
  static inline type PMPI_##name##_f2c(MPI_Fint handle) { return (type)handle; }     \
  static inline int MPI_##name##_toint(type handle) { return (int)handle; }          \
  static inline type MPI_##name##_fromint(int handle) { return (type)handle; }
MPI_NUMBERED(MPI_Comm, Comm)
MPI_NUMBERED(MPI_Datatype, Type)
MPI_NUMBERED(MPI_Errhandler, Errhandler)
MPI_NUMBERED(MPI_Group, Group)
MPI_NUMBERED(MPI_Info, Info)
MPI_NUMBERED(MPI_Message, Message)
MPI_NUMBERED(MPI_Op, Op)
MPI_NUMBERED(MPI_Request, Request)
MPI_NUMBERED(MPI_Win, Win)
MPI_NUMBERED(MPI_File, File)

#ifdef __cplusplus
}
#endif
#endif
