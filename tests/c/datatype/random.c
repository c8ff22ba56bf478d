/* Random datatypes against their typemaps: sizes and bounds, packing and unpacking, counting elements, and decoding a type
 * and making it again from what was decoded. MPI-5.0, 5.1 and 5.2. */
// run: n=1 timeout=60
#include "typemap.h"

static void check_bounds(const sample *s)
{
  bounds b = map_bounds(&s->m);
  MPI_Count size, lb, extent, tlb, textent;
  MPI_Aint alb, aextent;
  int small;
  MPI_Type_size_c(s->t, &size);
  MPI_Type_size(s->t, &small);
  MPI_Type_get_extent_c(s->t, &lb, &extent);
  MPI_Type_get_true_extent_x(s->t, &tlb, &textent);
  MPI_Type_get_extent(s->t, &alb, &aextent);
  CHECK(size == b.size && small == b.size);
  CHECK(lb == b.lb && extent == b.extent && alb == lb && aextent == extent);
  CHECK(tlb == b.true_lb && textent == b.true_extent);
}

static void check_packing(const sample *s)
{
  int64_t count = between(0, 3), *at = malloc((size_t)(count * map_bounds(&s->m).size + 1) * sizeof *at);
  area a = area_for(s, count), b = area_for(s, count);
  int64_t n = area_bytes(&a, s, count, at);
  unsigned char *packed = malloc((size_t)n + 9), *before = area_copy(&b);
  int pos = 4, size;
  MPI_Pack_size((int)count, s->t, MPI_COMM_WORLD, &size);
  CHECK(size >= n);
  memset(packed, 0xaa, (size_t)n + 9);
  MPI_Pack(area_address(&a), (int)count, s->t, packed, (int)n + 5, &pos, MPI_COMM_WORLD);
  CHECK(pos == n + 4 && packed[3] == 0xaa && packed[n + 4] == 0xaa);
  for (int64_t i = 0; i < n; i++) CHECK(packed[4 + i] == a.mem[at[i]]);
  MPI_Count cpos = 4;
  MPI_Unpack_c(packed, n + 4, &cpos, area_address(&b), count, s->t, MPI_COMM_WORLD);
  CHECK(cpos == n + 4 && area_received(&b, before, at, packed + 4, n));
  free(packed), free(before), free(at), free(a.mem), free(b.mem);
}

static void check_elements(const sample *s)
{
  int64_t bytes = 0, elements = 0, size = map_bounds(&s->m).size;
  for (int rep = 0; rep < 2; rep++)
    for (int j = 0; j < s->m.n; j++) {
      if (s->m.e[j].what >= BASICS) continue;
      bytes += basic_size[s->m.e[j].what];
      elements++;
      MPI_Status st;
      MPI_Count got, raw;
      int whole;
      memset(&st, 0, sizeof st);
      MPI_Status_set_elements(&st, s->t, (int)elements);
      MPI_Get_elements_c(&st, s->t, &got);
      MPI_Get_elements_c(&st, MPI_BYTE, &raw);
      MPI_Get_count(&st, s->t, &whole);
      CHECK(got == elements && raw == bytes);
      CHECK(whole == (bytes % size ? MPI_UNDEFINED : bytes / size));
      if (basic_size[s->m.e[j].what] > 1) { /* a message that ends inside of it */
        MPI_Status_set_elements_c(&st, MPI_BYTE, bytes - 1);
        MPI_Get_elements_c(&st, s->t, &got);
        CHECK(got == MPI_UNDEFINED);
      }
    }
}

/* Makes a type again from its contents; all types that are handed out are freed. */
static MPI_Datatype remake(MPI_Datatype t)
{
  MPI_Count ni, na, nc, nd;
  int comb;
  MPI_Type_get_envelope_c(t, &ni, &na, &nc, &nd, &comb);
  if (comb == MPI_COMBINER_NAMED) return t;
  int *i = malloc((size_t)(ni + 1) * sizeof *i);
  MPI_Aint *a = malloc((size_t)(na + 1) * sizeof *a);
  MPI_Count *c = malloc((size_t)(nc + 1) * sizeof *c);
  MPI_Datatype *d = malloc((size_t)(nd + 1) * sizeof *d), *e = malloc((size_t)(nd + 1) * sizeof *e),
               made = MPI_DATATYPE_NULL;
  MPI_Type_get_contents_c(t, ni, na, nc, nd, i, a, c, d);
  for (int k = 0; k < nd; k++) {
    int inner;
    e[k] = remake(d[k]);
    MPI_Count w;
    MPI_Type_get_envelope_c(d[k], &w, &w, &w, &w, &inner);
    if (inner != MPI_COMBINER_NAMED) MPI_Type_free(&d[k]);
  }
  int n = ni ? i[0] : 0, g = nc > 0;
  MPI_Count m = g ? c[0] : 0;
  switch (comb) {
  case MPI_COMBINER_DUP: MPI_Type_dup(e[0], &made); break;
  case MPI_COMBINER_CONTIGUOUS: MPI_Type_contiguous(n, e[0], &made); break;
  case MPI_COMBINER_VECTOR:
    g ? MPI_Type_vector_c(m, c[1], c[2], e[0], &made) : MPI_Type_vector(n, i[1], i[2], e[0], &made);
    break;
  case MPI_COMBINER_HVECTOR:
    g ? MPI_Type_create_hvector_c(m, c[1], c[2], e[0], &made) : MPI_Type_create_hvector(n, i[1], a[0], e[0], &made);
    break;
  case MPI_COMBINER_INDEXED:
    g ? MPI_Type_indexed_c(m, c + 1, c + 1 + m, e[0], &made) : MPI_Type_indexed(n, i + 1, i + 1 + n, e[0], &made);
    break;
  case MPI_COMBINER_HINDEXED:
    g ? MPI_Type_create_hindexed_c(m, c + 1, c + 1 + m, e[0], &made)
      : MPI_Type_create_hindexed(n, i + 1, a, e[0], &made);
    break;
  case MPI_COMBINER_HINDEXED_BLOCK:
    g ? MPI_Type_create_hindexed_block_c(m, c[1], c + 2, e[0], &made)
      : MPI_Type_create_hindexed_block(n, i[1], a, e[0], &made);
    break;
  case MPI_COMBINER_STRUCT:
    g ? MPI_Type_create_struct_c(m, c + 1, c + 1 + m, e, &made) : MPI_Type_create_struct(n, i + 1, a, e, &made);
    break;
  case MPI_COMBINER_SUBARRAY:
    g ? MPI_Type_create_subarray_c(n, c, c + n, c + 2 * n, i[1], e[0], &made)
      : MPI_Type_create_subarray(n, i + 1, i + 1 + n, i + 1 + 2 * n, i[1 + 3 * n], e[0], &made);
    break;
  case MPI_COMBINER_RESIZED:
    g ? MPI_Type_create_resized_c(e[0], c[0], c[1], &made) : MPI_Type_create_resized(e[0], a[0], a[1], &made);
    break;
  default: CHECK(!"combiner");
  }
  for (int k = 0; k < nd; k++) {
    MPI_Count w;
    int inner;
    MPI_Type_get_envelope_c(e[k], &w, &w, &w, &w, &inner);
    if (inner != MPI_COMBINER_NAMED) MPI_Type_free(&e[k]);
  }
  free(i), free(a), free(c), free(d), free(e);
  return made;
}

static void check_contents(sample *s)
{
  sample again = *s;
  again.t = remake(s->t);
  MPI_Type_commit(&again.t);
  check_bounds(&again);
  check_packing(&again);
  MPI_Type_free(&again.t);
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  for (unsigned i = 1; i <= 4000; i++) {
    reseed(i);
    sample *s = random_type((int)between(0, 4));
    check_bounds(s);
    MPI_Type_commit(&s->t);
    check_packing(s);
    check_elements(s);
    check_contents(s);
    free_type(s);
  }
  MPI_Finalize();
  return 0;
}
