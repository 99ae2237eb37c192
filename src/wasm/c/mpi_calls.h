/* The calls of mpi.h that exist with counts of int and of MPI_Count. MPI_N is the type of a count, MPI_DISPL that of a displacement in
 * elements, MPI_BYTES that of one in bytes. Included twice, so without a guard. */

MPI_SIZED(Send, (const void *, MPI_N, MPI_Datatype, int, int, MPI_Comm))
MPI_SIZED(Bsend, (const void *, MPI_N, MPI_Datatype, int, int, MPI_Comm))
MPI_SIZED(Ssend, (const void *, MPI_N, MPI_Datatype, int, int, MPI_Comm))
MPI_SIZED(Rsend, (const void *, MPI_N, MPI_Datatype, int, int, MPI_Comm))
MPI_SIZED(Recv, (void *, MPI_N, MPI_Datatype, int, int, MPI_Comm, MPI_Status *))
MPI_SIZED(Isend, (const void *, MPI_N, MPI_Datatype, int, int, MPI_Comm, MPI_Request *))
MPI_SIZED(Ibsend, (const void *, MPI_N, MPI_Datatype, int, int, MPI_Comm, MPI_Request *))
MPI_SIZED(Issend, (const void *, MPI_N, MPI_Datatype, int, int, MPI_Comm, MPI_Request *))
MPI_SIZED(Irsend, (const void *, MPI_N, MPI_Datatype, int, int, MPI_Comm, MPI_Request *))
MPI_SIZED(Irecv, (void *, MPI_N, MPI_Datatype, int, int, MPI_Comm, MPI_Request *))
MPI_SIZED(Send_init, (const void *, MPI_N, MPI_Datatype, int, int, MPI_Comm, MPI_Request *))
MPI_SIZED(Bsend_init, (const void *, MPI_N, MPI_Datatype, int, int, MPI_Comm, MPI_Request *))
MPI_SIZED(Ssend_init, (const void *, MPI_N, MPI_Datatype, int, int, MPI_Comm, MPI_Request *))
MPI_SIZED(Rsend_init, (const void *, MPI_N, MPI_Datatype, int, int, MPI_Comm, MPI_Request *))
MPI_SIZED(Recv_init, (void *, MPI_N, MPI_Datatype, int, int, MPI_Comm, MPI_Request *))
MPI_SIZED(Mrecv, (void *, MPI_N, MPI_Datatype, MPI_Message *, MPI_Status *))
MPI_SIZED(Imrecv, (void *, MPI_N, MPI_Datatype, MPI_Message *, MPI_Request *))
MPI_SIZED(Sendrecv,
          (const void *, MPI_N, MPI_Datatype, int, int, void *, MPI_N, MPI_Datatype, int, int, MPI_Comm, MPI_Status *))
MPI_SIZED(Sendrecv_replace, (void *, MPI_N, MPI_Datatype, int, int, int, int, MPI_Comm, MPI_Status *))
MPI_SIZED(Isendrecv,
          (const void *, MPI_N, MPI_Datatype, int, int, void *, MPI_N, MPI_Datatype, int, int, MPI_Comm, MPI_Request *))
MPI_SIZED(Isendrecv_replace, (void *, MPI_N, MPI_Datatype, int, int, int, int, MPI_Comm, MPI_Request *))
MPI_SIZED(Get_count, (const MPI_Status *, MPI_Datatype, MPI_N *))
MPI_SIZED(Get_elements, (const MPI_Status *, MPI_Datatype, MPI_N *))
MPI_SIZED(Status_set_elements, (MPI_Status *, MPI_Datatype, MPI_N))
MPI_SIZED(Buffer_attach, (void *, MPI_N))
MPI_SIZED(Buffer_detach, (void *, MPI_N *))

#define MPI_COLLECTIVE(name, plain, more)                                 \
  MPI_SIZED(name, (MPI_UNPACK plain, MPI_Comm))                           \
  MPI_SIZED(I##more, (MPI_UNPACK plain, MPI_Comm, MPI_Request *))         \
  MPI_SIZED(name##_init, (MPI_UNPACK plain, MPI_Comm, MPI_Info, MPI_Request *))
#define MPI_UNPACK(...) __VA_ARGS__
MPI_COLLECTIVE(Bcast, (void *, MPI_N, MPI_Datatype, int), bcast)
MPI_COLLECTIVE(Gather, (const void *, MPI_N, MPI_Datatype, void *, MPI_N, MPI_Datatype, int), gather)
MPI_COLLECTIVE(Gatherv, (const void *, MPI_N, MPI_Datatype, void *, const MPI_N[], const MPI_DISPL[], MPI_Datatype, int), gatherv)
MPI_COLLECTIVE(Scatter, (const void *, MPI_N, MPI_Datatype, void *, MPI_N, MPI_Datatype, int), scatter)
MPI_COLLECTIVE(Scatterv, (const void *, const MPI_N[], const MPI_DISPL[], MPI_Datatype, void *, MPI_N, MPI_Datatype, int), scatterv)
MPI_COLLECTIVE(Allgather, (const void *, MPI_N, MPI_Datatype, void *, MPI_N, MPI_Datatype), allgather)
MPI_COLLECTIVE(Allgatherv, (const void *, MPI_N, MPI_Datatype, void *, const MPI_N[], const MPI_DISPL[], MPI_Datatype), allgatherv)
MPI_COLLECTIVE(Alltoall, (const void *, MPI_N, MPI_Datatype, void *, MPI_N, MPI_Datatype), alltoall)
MPI_COLLECTIVE(Alltoallv,
               (const void *, const MPI_N[], const MPI_DISPL[], MPI_Datatype, void *, const MPI_N[], const MPI_DISPL[], MPI_Datatype),
               alltoallv)
MPI_COLLECTIVE(Alltoallw,
               (const void *, const MPI_N[], const MPI_DISPL[], const MPI_Datatype[], void *, const MPI_N[], const MPI_DISPL[],
                const MPI_Datatype[]),
               alltoallw)
MPI_COLLECTIVE(Reduce, (const void *, void *, MPI_N, MPI_Datatype, MPI_Op, int), reduce)
MPI_COLLECTIVE(Allreduce, (const void *, void *, MPI_N, MPI_Datatype, MPI_Op), allreduce)
MPI_COLLECTIVE(Reduce_scatter, (const void *, void *, const MPI_N[], MPI_Datatype, MPI_Op), reduce_scatter)
MPI_COLLECTIVE(Reduce_scatter_block, (const void *, void *, MPI_N, MPI_Datatype, MPI_Op), reduce_scatter_block)
MPI_COLLECTIVE(Scan, (const void *, void *, MPI_N, MPI_Datatype, MPI_Op), scan)
MPI_COLLECTIVE(Exscan, (const void *, void *, MPI_N, MPI_Datatype, MPI_Op), exscan)
MPI_COLLECTIVE(Neighbor_allgather, (const void *, MPI_N, MPI_Datatype, void *, MPI_N, MPI_Datatype), neighbor_allgather)
MPI_COLLECTIVE(Neighbor_allgatherv, (const void *, MPI_N, MPI_Datatype, void *, const MPI_N[], const MPI_DISPL[], MPI_Datatype),
               neighbor_allgatherv)
MPI_COLLECTIVE(Neighbor_alltoall, (const void *, MPI_N, MPI_Datatype, void *, MPI_N, MPI_Datatype), neighbor_alltoall)
MPI_COLLECTIVE(Neighbor_alltoallv,
               (const void *, const MPI_N[], const MPI_DISPL[], MPI_Datatype, void *, const MPI_N[], const MPI_DISPL[], MPI_Datatype),
               neighbor_alltoallv)
MPI_COLLECTIVE(Neighbor_alltoallw,
               (const void *, const MPI_N[], const MPI_Aint[], const MPI_Datatype[], void *, const MPI_N[], const MPI_Aint[],
                const MPI_Datatype[]),
               neighbor_alltoallw)
#undef MPI_COLLECTIVE
#undef MPI_UNPACK
MPI_SIZED(Reduce_local, (const void *, void *, MPI_N, MPI_Datatype, MPI_Op))

MPI_SIZED(Type_contiguous, (MPI_N, MPI_Datatype, MPI_Datatype *))
MPI_SIZED(Type_vector, (MPI_N, MPI_N, MPI_N, MPI_Datatype, MPI_Datatype *))
MPI_SIZED(Type_create_hvector, (MPI_N, MPI_N, MPI_BYTES, MPI_Datatype, MPI_Datatype *))
MPI_SIZED(Type_indexed, (MPI_N, const MPI_N[], const MPI_N[], MPI_Datatype, MPI_Datatype *))
MPI_SIZED(Type_create_hindexed, (MPI_N, const MPI_N[], const MPI_BYTES[], MPI_Datatype, MPI_Datatype *))
MPI_SIZED(Type_create_indexed_block, (MPI_N, MPI_N, const MPI_N[], MPI_Datatype, MPI_Datatype *))
MPI_SIZED(Type_create_hindexed_block, (MPI_N, MPI_N, const MPI_BYTES[], MPI_Datatype, MPI_Datatype *))
MPI_SIZED(Type_create_struct, (MPI_N, const MPI_N[], const MPI_BYTES[], const MPI_Datatype[], MPI_Datatype *))
MPI_SIZED(Type_create_subarray, (int, const MPI_N[], const MPI_N[], const MPI_N[], int, MPI_Datatype, MPI_Datatype *))
MPI_SIZED(Type_create_darray,
          (int, int, int, const MPI_N[], const int[], const int[], const int[], int, MPI_Datatype, MPI_Datatype *))
MPI_SIZED(Type_create_resized, (MPI_Datatype, MPI_BYTES, MPI_BYTES, MPI_Datatype *))
MPI_SIZED(Type_size, (MPI_Datatype, MPI_N *))
MPI_SIZED(Type_get_extent, (MPI_Datatype, MPI_BYTES *, MPI_BYTES *))
MPI_SIZED(Type_get_true_extent, (MPI_Datatype, MPI_BYTES *, MPI_BYTES *))
MPI_SIZED(Pack, (const void *, MPI_N, MPI_Datatype, void *, MPI_N, MPI_N *, MPI_Comm))
MPI_SIZED(Unpack, (const void *, MPI_N, MPI_N *, void *, MPI_N, MPI_Datatype, MPI_Comm))
MPI_SIZED(Pack_size, (MPI_N, MPI_Datatype, MPI_Comm, MPI_N *))
MPI_SIZED(Pack_external, (const char[], const void *, MPI_N, MPI_Datatype, void *, MPI_BYTES, MPI_BYTES *))
MPI_SIZED(Unpack_external, (const char[], const void *, MPI_BYTES, MPI_BYTES *, void *, MPI_N, MPI_Datatype))
MPI_SIZED(Pack_external_size, (const char[], MPI_N, MPI_Datatype, MPI_BYTES *))
#ifndef MPI_OP_CREATE
#define MPI_OP_CREATE
MPI_F(Op_create, (MPI_User_function *, int, MPI_Op *))
MPI_F(Op_create_c, (MPI_User_function_c *, int, MPI_Op *))
#endif
