/* Array sections as buffers (cdesc.h). */
#include "cdesc.h"

#include <stdint.h>
#include <string.h>

int spxf_as_is(struct spxf_view *v, const CFI_cdesc_t *d, MPI_Count count, MPI_Fint type)
{
  *v = (struct spxf_view){d, d->base_addr, count, type, MPI_DATATYPE_NULL, NULL};
  return MPI_SUCCESS;
}

static CFI_index_t elements(const CFI_cdesc_t *d)
{
  CFI_index_t n = 1;
  for (int i = 0; i < d->rank; i++) n *= d->dim[i].extent;
  return n;
}

/* 1 when elements of the type lie side by side without gaps; then *size is the size of one. */
static int gapless(MPI_Datatype type, MPI_Count *size)
{
  MPI_Count lb, extent, true_lb, true_extent;
  return PMPI_Type_size_c(type, size) == MPI_SUCCESS && PMPI_Type_get_extent_c(type, &lb, &extent) == MPI_SUCCESS &&
         PMPI_Type_get_true_extent_c(type, &true_lb, &true_extent) == MPI_SUCCESS && *size > 0 && lb == 0 &&
         true_lb == 0 && extent == *size && true_extent == *size;
}

/* The pieces of the first n elements of a section, in the order of the elements: whole planes, whole lines, single elements, a part of one. */
struct pieces {
  int n;
  int lengths[CFI_MAX_RANK + 1];
  MPI_Aint at[CFI_MAX_RANK + 1];
  MPI_Datatype types[CFI_MAX_RANK + 1];
  int err;
};

static void piece(struct pieces *p, MPI_Aint at, MPI_Datatype type, int err)
{
  if (p->err == MPI_SUCCESS) p->err = err;
  if (err != MPI_SUCCESS) return;
  p->lengths[p->n] = 1;
  p->at[p->n] = at;
  p->types[p->n++] = type;
}

/* Type of n things at a distance, over what is freed when it is not the caller's. */
static MPI_Datatype spaced(struct pieces *p, MPI_Count n, MPI_Count distance, MPI_Datatype of, MPI_Datatype keep)
{
  MPI_Datatype made = MPI_DATATYPE_NULL;
  if (p->err == MPI_SUCCESS) p->err = PMPI_Type_create_hvector_c(n, 1, distance, of, &made);
  if (of != keep && of != MPI_DATATYPE_NULL) PMPI_Type_free(&of);
  return made;
}

/* Splits the first count elements of type, `per` of which make an element of the section. */
static void split(struct pieces *p, const CFI_cdesc_t *d, MPI_Count count, MPI_Datatype type, MPI_Count per)
{
  MPI_Count whole = count / per, rest = count % per, slab = elements(d);
  MPI_Aint at = 0;
  MPI_Datatype parts[CFI_MAX_RANK]; /* parts[i]: all elements of the dimensions below i */
  MPI_Count size = 0;
  PMPI_Type_size_c(type, &size);
  p->err = PMPI_Type_contiguous_c(per, type, &parts[0]);
  for (int i = 1; i < d->rank; i++) {
    parts[i] = MPI_DATATYPE_NULL;
    if (p->err == MPI_SUCCESS)
      p->err =
          PMPI_Type_create_hvector_c(d->dim[i - 1].extent, 1, (MPI_Count)d->dim[i - 1].sm, parts[i - 1], &parts[i]);
  }
  for (int i = d->rank - 1; i >= 0 && p->err == MPI_SUCCESS; i--) {
    slab /= d->dim[i].extent;
    MPI_Count n = whole / slab;
    whole %= slab;
    if (n == 0) continue;
    MPI_Datatype made = spaced(p, n, (MPI_Count)d->dim[i].sm, parts[i], parts[i]);
    piece(p, at, made, p->err);
    at += (MPI_Aint)n * d->dim[i].sm;
  }
  if (rest > 0 && p->err == MPI_SUCCESS) {
    MPI_Datatype made = MPI_DATATYPE_NULL;
    int err = PMPI_Type_contiguous_c(rest, type, &made);
    piece(p, at, made, err);
  }
  for (int i = 0; i < d->rank; i++)
    if (parts[i] != MPI_DATATYPE_NULL) PMPI_Type_free(&parts[i]);
}

int spxf_datatype(struct spxf_view *v, const CFI_cdesc_t *d, MPI_Count count, MPI_Fint type, int how)
{
  MPI_Datatype t = MPI_Type_fromint(type);
  MPI_Count size = 0;
  spxf_as_is(v, d, count, type);
  if (spxf_dense(d) || count <= 0) return MPI_SUCCESS;
  if (!gapless(t, &size) || (MPI_Count)d->elem_len % size != 0) return spxf_copy(v, d, type, how);
  MPI_Count per = (MPI_Count)d->elem_len / size;
  if (count > per * elements(d)) return MPI_ERR_COUNT;
  struct pieces p = {.n = 0};
  split(&p, d, count, t, per);
  MPI_Datatype made = MPI_DATATYPE_NULL;
  if (p.err == MPI_SUCCESS) p.err = PMPI_Type_create_struct(p.n, p.lengths, p.at, p.types, &made);
  if (p.err == MPI_SUCCESS) p.err = PMPI_Type_commit(&made);
  for (int i = 0; i < p.n; i++) PMPI_Type_free(&p.types[i]);
  if (p.err != MPI_SUCCESS) return p.err;
  v->count = 1;
  v->made = made;
  v->type = MPI_Type_toint(made);
  return MPI_SUCCESS;
}

/* The distance of all neighbouring elements, or 0 if it is not the same, or backwards. */
static CFI_index_t distance(const CFI_cdesc_t *d)
{
  CFI_index_t sm = 0, n = 1;
  for (int i = 0; i < d->rank; i++) {
    if (d->dim[i].extent == 1) continue;
    if (sm == 0)
      sm = d->dim[i].sm;
    else if (d->dim[i].sm != sm * n)
      return 0;
    n *= d->dim[i].extent;
  }
  return sm > 0 ? sm : 0;
}

int spxf_unit(struct spxf_view *v, const CFI_cdesc_t *d, MPI_Fint type, int how)
{
  MPI_Count size = 0;
  CFI_index_t sm = distance(d);
  spxf_as_is(v, d, 0, type);
  if (spxf_dense(d)) return MPI_SUCCESS;
  if (sm == 0 || !gapless(MPI_Type_fromint(type), &size) || size != (MPI_Count)d->elem_len)
    return spxf_copy(v, d, type, how);
  int err = PMPI_Type_create_resized_c(MPI_Type_fromint(type), 0, (MPI_Count)sm, &v->made);
  if (err == MPI_SUCCESS) err = PMPI_Type_commit(&v->made);
  if (err == MPI_SUCCESS) v->type = MPI_Type_toint(v->made);
  return err;
}

/* Copies between the section and memory in which its elements lie side by side. */
static void copy_elements(const CFI_cdesc_t *d, char *beside, int back)
{
  CFI_index_t index[CFI_MAX_RANK] = {0}, n = elements(d);
  char *at = d->base_addr;
  for (CFI_index_t i = 0; i < n; i++, beside += d->elem_len) {
    memcpy(back ? at : beside, back ? beside : at, d->elem_len);
    for (int k = 0; k < d->rank; k++) {
      at += d->dim[k].sm;
      if (++index[k] < d->dim[k].extent) break;
      at -= d->dim[k].sm * d->dim[k].extent;
      index[k] = 0;
    }
  }
}

int spxf_copy(struct spxf_view *v, const CFI_cdesc_t *d, MPI_Fint type, int how)
{
  if (v->d != d) spxf_as_is(v, d, 0, type);
  if (spxf_dense(d)) return MPI_SUCCESS;
  if ((how & SPXF_LATER) && !MPIX_Request_attach) return MPI_ERR_UNSUPPORTED_OPERATION;
  v->copy = malloc((size_t)elements(d) * d->elem_len);
  if (!v->copy) return MPI_ERR_NO_MEM;
  v->base = v->copy;
  copy_elements(d, v->copy, 0);
  return MPI_SUCCESS;
}

/* A copy that a pending operation uses. */
struct pending {
  void *copy;
  int how;
  CFI_CDESC_T(CFI_MAX_RANK) d;
};

static void again(void *state)
{
  struct pending *p = state;
  if (p->how & SPXF_READS) copy_elements((CFI_cdesc_t *)&p->d, p->copy, 0);
}

static void complete(void *state)
{
  struct pending *p = state;
  if (p->how & SPXF_WRITES) copy_elements((CFI_cdesc_t *)&p->d, p->copy, 1);
}

static void release(void *state)
{
  free(((struct pending *)state)->copy);
  free(state);
}

/* Leaves the copy to the request; 0 when there is nothing to wait for. */
static int leave(struct spxf_view *v, int how, MPI_Fint request)
{
  if (request == MPI_Request_toint(MPI_REQUEST_NULL)) return 0;
  struct pending *p = malloc(sizeof *p);
  if (!p) return 0;
  p->copy = v->copy;
  p->how = how;
  memcpy(&p->d, v->d, sizeof *v->d + sizeof v->d->dim[0] * (size_t)v->d->rank);
  if (MPIX_Request_attach(MPI_Request_fromint(request), again, complete, release, p) == MPI_SUCCESS) return 1;
  free(p);
  return 0;
}

void spxf_close(struct spxf_view *v, int how, const MPI_Fint *request, int err)
{
  if (v->made != MPI_DATATYPE_NULL) PMPI_Type_free(&v->made);
  if (!v->copy) return;
  if (request && err == MPI_SUCCESS && leave(v, how, *request)) return;
  if ((how & SPXF_WRITES) && err == MPI_SUCCESS) copy_elements(v->d, v->copy, 1);
  free(v->copy);
}

int spxf_is_root(MPI_Fint comm, MPI_Fint root)
{
  int inter = 0, rank = -1;
  MPI_Comm c = MPI_Comm_fromint(comm);
  if (PMPI_Comm_test_inter(c, &inter) != MPI_SUCCESS) return 0;
  if (inter) return root == MPI_ROOT;
  return PMPI_Comm_rank(c, &rank) == MPI_SUCCESS && rank == root;
}

int spxf_raise_comm(MPI_Fint comm, int err)
{
  PMPI_Comm_call_errhandler(MPI_Comm_fromint(comm), err);
  return err;
}

int spxf_raise_win(MPI_Fint win, int err)
{
  PMPI_Win_call_errhandler(MPI_Win_fromint(win), err);
  return err;
}

int spxf_raise_file(MPI_Fint file, int err)
{
  PMPI_File_call_errhandler(MPI_File_fromint(file), err);
  return err;
}
