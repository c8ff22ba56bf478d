/* The tables of the tool information interface are sound (MPI-5.0, 16.3): every variable, category, event, enumeration and source
 * is found by its name and described; what is wrong has its return code; before MPI_Init, after MPI_Finalize, over and over. */
// run: n=1
// run: n=1 args="-no-mpi"
#include "../check.h"
#include <stdlib.h>
#include <string.h>

static char name[256], text[1024];
static int n, len, verb, bind_to, scope;

static void cvars(void)
{
  MPI_Datatype type;
  MPI_T_enum e;
  CHECK(MPI_T_cvar_get_num(&n) == MPI_SUCCESS && n > 10);
  for (int i = 0; i < n; i++) {
    int name_len = sizeof name, index = -1, count = 0;
    len = sizeof text;
    CHECK(MPI_T_cvar_get_info(i, name, &name_len, &verb, &type, &e, text, &len, &bind_to, &scope) == MPI_SUCCESS);
    CHECK((int)strlen(name) + 1 == name_len && strncmp(name, "SPX_", 4) == 0 && len > 10);
    CHECK(bind_to == MPI_T_BIND_NO_OBJECT && scope >= MPI_T_SCOPE_CONSTANT && scope <= MPI_T_SCOPE_ALL_EQ);
    CHECK(MPI_T_cvar_get_index(name, &index) == MPI_SUCCESS && index == i);
    MPI_T_cvar_handle h;
    CHECK(MPI_T_cvar_handle_alloc(i, NULL, &h, &count) == MPI_SUCCESS && count >= 1);
    CHECK(type == MPI_CHAR ? count == 256 : count == 1);
    char buf[256];
    CHECK(MPI_T_cvar_read(h, buf) == MPI_SUCCESS);
    if (e != MPI_T_ENUM_NULL) {
      int items = 0, value = *(int *)buf, v;
      CHECK(type == MPI_INT && MPI_T_enum_get_info(e, &items, text, &len) == MPI_SUCCESS && items >= 2);
      CHECK(value >= 0 && value < items);
      for (int k = 0; k < items; k++) {
        len = sizeof text;
        CHECK(MPI_T_enum_get_item(e, k, &v, text, &len) == MPI_SUCCESS && v == k && len > 1);
      }
      CHECK(MPI_T_enum_get_item(e, items, &v, text, &len) == MPI_T_ERR_INVALID_ITEM);
      CHECK(MPI_T_cvar_write(h, &items) == MPI_T_ERR_INVALID);
    }
    MPI_T_cvar_handle old = h;
    CHECK(MPI_T_cvar_handle_free(&h) == MPI_SUCCESS);
    CHECK(MPI_T_cvar_read(old, buf) == MPI_T_ERR_INVALID_HANDLE &&
          MPI_T_cvar_handle_free(&old) == MPI_T_ERR_INVALID_HANDLE);
  }
}

static void pvars(void)
{
  int num, class, readonly, continuous, atomic;
  MPI_Datatype type;
  CHECK(MPI_T_pvar_get_num(&num) == MPI_SUCCESS && num > 10);
  for (int i = 0; i < num; i++) {
    int index = -1;
    n = sizeof name, len = sizeof text;
    MPI_T_enum e = MPI_T_ENUM_NULL;
    CHECK(MPI_T_pvar_get_info(i, name, &n, &verb, &class, &type, &e, text, &len, &bind_to, &readonly, &continuous,
                              &atomic) == MPI_SUCCESS);
    CHECK(MPI_T_pvar_get_index(name, class, &index) == MPI_SUCCESS && index == i);
    CHECK(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_GENERIC, &index) == MPI_T_ERR_INVALID_NAME);
    if (class == MPI_T_PVAR_CLASS_STATE) { /* MPI-5.0, 16.3.7: MPI_INT, with an enumeration of the states */
      int items = 0, value;
      len = sizeof text;
      CHECK(type == MPI_INT && readonly && continuous && !atomic && bind_to == MPI_T_BIND_MPI_COMM);
      CHECK(MPI_T_enum_get_info(e, &items, text, &len) == MPI_SUCCESS && items > 1);
      CHECK(MPI_T_enum_get_item(e, items - 1, &value, text, &len) == MPI_SUCCESS && value == items - 1);
      continue;
    }
    CHECK(e == MPI_T_ENUM_NULL);
    CHECK(type == (class == MPI_T_PVAR_CLASS_TIMER ? MPI_DOUBLE : MPI_UNSIGNED_LONG_LONG));
  }
}

static void categories(void)
{
  int num, cv, pv, ca, ev, sum[3] = {0}, want[3], index, list[256];
  MPI_T_cvar_get_num(&want[0]), MPI_T_pvar_get_num(&want[1]), MPI_T_event_get_num(&want[2]);
  CHECK(MPI_T_category_get_num(&num) == MPI_SUCCESS && num > 3);
  for (int i = 0; i < num; i++) {
    n = sizeof name, len = sizeof text;
    CHECK(MPI_T_category_get_info(i, name, &n, text, &len, &cv, &pv, &ca) == MPI_SUCCESS && len > 10);
    CHECK(MPI_T_category_get_index(name, &index) == MPI_SUCCESS && index == i);
    CHECK(MPI_T_category_get_num_events(i, &ev) == MPI_SUCCESS);
    CHECK(ca == (i == 0 ? num - 1 : 0));
    sum[0] += cv, sum[1] += pv, sum[2] += ev;
    CHECK(MPI_T_category_get_cvars(i, 256, list) == MPI_SUCCESS && (cv == 0 || list[cv - 1] < want[0]));
    CHECK(MPI_T_category_get_pvars(i, 256, list) == MPI_SUCCESS && (pv == 0 || list[pv - 1] < want[1]));
    CHECK(MPI_T_category_get_events(i, 256, list) == MPI_SUCCESS && (ev == 0 || list[ev - 1] < want[2]));
    CHECK(MPI_T_category_get_categories(i, 256, list) == MPI_SUCCESS && (ca == 0 || list[ca - 1] == num - 1));
  }
  CHECK(sum[0] == want[0] && sum[1] == want[1] && sum[2] == want[2]);
  CHECK(MPI_T_category_changed(&n) == MPI_SUCCESS);
}

static void events(void)
{
  int num, index, m;
  CHECK(MPI_T_event_get_num(&num) == MPI_SUCCESS && num >= 3);
  for (int i = 0; i < num; i++) {
    MPI_Datatype types[8];
    MPI_Aint at[8];
    MPI_Info info = MPI_INFO_NULL;
    n = sizeof name, len = sizeof text, m = 8;
    CHECK(MPI_T_event_get_info(i, name, &n, &verb, types, at, &m, NULL, &info, text, &len, &bind_to) == MPI_SUCCESS);
    CHECK(m >= 1 && m <= 8 && at[0] == 0 && info != MPI_INFO_NULL);
    MPI_Info_free(&info);
    CHECK(MPI_T_event_get_index(name, &index) == MPI_SUCCESS && index == i);
  }
  MPI_T_source_order order;
  MPI_Count ticks, most, t[2];
  n = sizeof name, len = sizeof text;
  CHECK(MPI_T_source_get_num(&m) == MPI_SUCCESS && m == 1);
  CHECK(MPI_T_source_get_info(0, name, &n, text, &len, &order, &ticks, &most, NULL) == MPI_SUCCESS);
  CHECK(order == MPI_T_SOURCE_ORDERED && ticks == 1000000000 && most > 0);
  CHECK(MPI_T_source_get_timestamp(0, &t[0]) == MPI_SUCCESS && MPI_T_source_get_timestamp(0, &t[1]) == MPI_SUCCESS);
  CHECK(t[1] >= t[0]);
}

static void wrong(void)
{
  int i = 0, count;
  MPI_T_cvar_handle c;
  MPI_T_pvar_session s;
  MPI_T_pvar_handle p;
  MPI_T_event_registration r;
  CHECK(MPI_T_cvar_get_index("SPX_NO_SUCH", &i) == MPI_T_ERR_INVALID_NAME);
  CHECK(MPI_T_cvar_get_info(-1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) == MPI_T_ERR_INVALID_INDEX);
  CHECK(MPI_T_cvar_handle_alloc(100000, NULL, &c, &count) == MPI_T_ERR_INVALID_INDEX);
  CHECK(MPI_T_cvar_read((MPI_T_cvar_handle)0x1234, &i) == MPI_T_ERR_INVALID_HANDLE);
  CHECK(MPI_T_cvar_write(MPI_T_CVAR_HANDLE_NULL, &i) == MPI_T_ERR_INVALID_HANDLE);
  CHECK(MPI_T_enum_get_info((MPI_T_enum)0x77, &i, NULL, NULL) == MPI_T_ERR_INVALID_HANDLE);
  CHECK(MPI_T_pvar_session_create(&s) == MPI_SUCCESS);
  CHECK(MPI_T_pvar_handle_alloc(s, -1, NULL, &p, &count) == MPI_T_ERR_INVALID_INDEX);
  CHECK(MPI_T_pvar_handle_alloc((MPI_T_pvar_session)9, 0, NULL, &p, &count) == MPI_T_ERR_INVALID_SESSION);
  CHECK(MPI_T_pvar_get_index("spx_comm_messages_sent", MPI_T_PVAR_CLASS_COUNTER, &i) == MPI_SUCCESS);
  CHECK(MPI_T_pvar_handle_alloc(s, i, NULL, &p, &count) == MPI_T_ERR_INVALID);
  CHECK(MPI_T_pvar_start(s, (MPI_T_pvar_handle)0x55) == MPI_T_ERR_INVALID_HANDLE);
  CHECK(MPI_T_pvar_read(s, MPI_T_PVAR_ALL_HANDLES, &i) == MPI_T_ERR_INVALID_HANDLE);
  CHECK(MPI_T_pvar_session_free(&s) == MPI_SUCCESS && MPI_T_pvar_session_free(&s) == MPI_T_ERR_INVALID_SESSION);
  CHECK(MPI_T_category_get_cvars(1000, 0, NULL) == MPI_T_ERR_INVALID_INDEX);
  CHECK(MPI_T_event_handle_alloc(77, NULL, MPI_INFO_NULL, &r) == MPI_T_ERR_INVALID_INDEX);
  CHECK(MPI_T_event_read((MPI_T_event_instance)0x99, 0, &i) == MPI_T_ERR_INVALID_HANDLE);
  CHECK(MPI_T_event_handle_alloc(0, NULL, MPI_INFO_NULL, &r) == MPI_SUCCESS);
  CHECK(MPI_T_event_register_callback(r, (MPI_T_cb_safety)7, MPI_INFO_NULL, NULL, NULL) == MPI_T_ERR_INVALID);
  CHECK(MPI_T_event_handle_free(r, NULL, NULL) == MPI_SUCCESS);
  CHECK(MPI_T_event_handle_free(r, NULL, NULL) == MPI_T_ERR_INVALID_HANDLE);
  CHECK(MPI_T_source_get_timestamp(1, NULL) == MPI_T_ERR_INVALID_INDEX);
}

static void all(void)
{
  cvars();
  pvars();
  categories();
  events();
  wrong();
}

/* Texts and choices may be written before MPI starts, and are read back. */
static void write_early(void)
{
  int i, count;
  char text_in[256] = "/nonexistent/x", text_out[256] = "";
  MPI_T_cvar_handle h;
  MPI_T_cvar_get_index("SPX_COUNTERS", &i);
  MPI_T_cvar_handle_alloc(i, NULL, &h, &count);
  CHECK(MPI_T_cvar_write(h, text_in) == MPI_SUCCESS && MPI_T_cvar_read(h, text_out) == MPI_SUCCESS);
  CHECK(strcmp(text_in, text_out) == 0);
  memset(text_in, 'x', sizeof text_in); /* no end */
  CHECK(MPI_T_cvar_write(h, text_in) == MPI_T_ERR_INVALID);
  text_in[0] = 0;
  CHECK(MPI_T_cvar_write(h, text_in) == MPI_SUCCESS);
  MPI_T_cvar_handle_free(&h);
  MPI_T_cvar_get_index("SPX_COLL_BCAST", &i);
  MPI_T_cvar_handle_alloc(i, NULL, &h, &count);
  int one = 1, is = 0;
  CHECK(MPI_T_cvar_write(h, &one) == MPI_SUCCESS && MPI_T_cvar_read(h, &is) == MPI_SUCCESS && is == 1);
  MPI_T_cvar_get_index("SPX_PANIC_IN", &i);
  MPI_T_cvar_handle_alloc(i, NULL, &h, &count);
  CHECK(MPI_T_cvar_write(h, text_in) == MPI_T_ERR_CVAR_SET_NEVER);
  MPI_T_cvar_get_index("SPX_CREDIT", &i);
  MPI_T_cvar_handle_alloc(i, NULL, &h, &count);
  unsigned long long v = 1 << 20, got = 0;
  CHECK(MPI_T_cvar_write(h, &v) == MPI_SUCCESS && MPI_T_cvar_read(h, &got) == MPI_SUCCESS && got == v);
}

int main(int argc, char **argv)
{
  int level = -1;
  CHECK(MPI_T_cvar_get_num(&n) == MPI_T_ERR_NOT_INITIALIZED);
  CHECK(MPI_T_finalize() == MPI_T_ERR_NOT_INITIALIZED);
  for (int i = 0; i < 3; i++) {
    CHECK(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &level) == MPI_SUCCESS && level == MPI_THREAD_MULTIPLE);
    all();
    if (i == 2) write_early();
    CHECK(MPI_T_finalize() == MPI_SUCCESS);
  }
  if (argc > 1) return check_status();
  MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
  MPI_Init(&argc, &argv);
  all();
  MPI_Bcast(&level, 1, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Finalize();
  all();
  MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
  MPI_T_finalize();
  CHECK(MPI_T_cvar_get_num(&n) == MPI_SUCCESS);
  MPI_T_finalize();
  CHECK(MPI_T_cvar_get_num(&n) == MPI_T_ERR_NOT_INITIALIZED);
  return check_status();
}
