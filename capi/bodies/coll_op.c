/* coll_op.c - operations as objects: MPI_Op_create, MPI_Op_free, MPI_Op_commutative.
 * MPI-5.0 6.9.5, 6.9.7. The predefined ones are in dataplane/datatype/reduce.c. */
#include "coll.h"
#include "reduce.h"

int spx_c_Op_create(spx_fnptr user_fn, int commute, MPI_Op *op)
{
  spx_op *o = (spx_op *)spx_new(SPX_K_OP);
  if (!o) {
    *op = MPI_OP_NULL;
    return spx_raise(0, NULL, MPI_ERR_NO_MEM, spx_fn_name[spx_fn],
                     "no memory for another operation");
  }
  o->fn = user_fn.fn;
  o->wide = user_fn.wide;
  o->commute = commute != 0;
  *op = (MPI_Op)(uintptr_t)o->o.handle;
  return MPI_SUCCESS;
}

/* Collectives under way hold references: the function is called until they are complete. */
int spx_c_Op_free(MPI_Op *op)
{
  spx_op *o = (spx_op *)spx_get(SPX_K_OP, *op);
  if (!o)
    return spx_raise(0, NULL, MPI_ERR_OP, spx_fn_name[spx_fn],
                     "*op is no operation, or was freed before");
  if (o->predef)
    return spx_raise(0, NULL, MPI_ERR_OP, spx_fn_name[spx_fn],
                     "*op is predefined; only operations of MPI_Op_create can be freed");
  spx_retire(SPX_K_OP, &o->o);
  *op = MPI_OP_NULL;
  return MPI_SUCCESS;
}

int spx_c_Op_commutative(spx_op *op, int *commute)
{
  *commute = op->commute;
  return MPI_SUCCESS;
}

/* Before MPI_Init: handles may be looked up then, and no other thread exists. */
__attribute__((constructor)) static void predefine(void) { spx_ops_init(); }
