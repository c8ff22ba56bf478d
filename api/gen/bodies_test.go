package main

import (
	"os"
	"path/filepath"
	"testing"

	"libspx/api"
)

func tables(t *testing.T) *api.Tables {
	t.Helper()
	tables, err := api.Load()
	if err != nil {
		t.Fatal(err)
	}
	return tables
}

// tree makes a folder with the files of a project: path -> text.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestBodiesAreFound(t *testing.T) {
	root := tree(t, map[string]string{
		"capi/bodies/a.c": `
int spx_c_Send(const void *buf, int64_t count,
               spx_type *datatype, int dest, int tag, spx_comm *comm)
{
}
int spx_c_Recv(void *buf); /* only declared */
double spx_c_Wtime(void) { return 0; }
  return spx_c_Bcast(a, b);
`,
		"capi/abi/zz_p2p.c": "int spx_c_Ssend(int a)\n{\n",
		"capi/b.go": `package main

// commSplit splits.
//
//spx:body MPI_Comm_split MPI_Comm_create
func commSplit(c *call) error { return nil }

//spx:body MPI_Type_size
// with more words
func typeSize(c *call) error { return nil }
`,
		"capi/b_test.go": "package main\n\n//spx:body MPI_Comm_dup\nfunc x() {}\n",
	})
	tt := tables(t)
	b, err := findBodies(root, tt)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct {
		where place
		goFn  string
	}{
		"MPI_Send": {inC, ""}, "MPI_Send_c": {inC, ""}, "MPI_Wtime": {inC, ""},
		"MPI_Recv": {unwritten, ""}, "MPI_Bcast": {unwritten, ""}, "MPI_Ssend": {unwritten, ""}, "MPI_Comm_dup": {unwritten, ""},
		"MPI_Comm_split": {inGo, "commSplit"}, "MPI_Comm_create": {inGo, "commSplit"},
		"MPI_Type_size": {inGo, "typeSize"}, "MPI_Type_size_c": {inGo, "typeSize"}, "MPI_Type_size_x": {inGo, "typeSize"},
	} {
		if got := b.of(tt.Function(name)); got.where != want.where || got.goFn != want.goFn {
			t.Errorf("%s: place %d, %q; want %d, %q", name, got.where, got.goFn, want.where, want.goFn)
		}
	}
}

// A C body may enter the Go body of the same function, in the small form and the large one.
func TestBothBodies(t *testing.T) {
	tt := tables(t)
	b, err := findBodies(tree(t, map[string]string{
		"capi/bodies/a.c": "int spx_c_File_read(MPI_File fh)\n{\n}\n",
		"capi/a.go":       "package main\n\n//spx:body MPI_File_read\nfunc fileRead(c *call) error { return nil }\n",
	}), tt)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"MPI_File_read": "fileRead", "MPI_File_read_c": "fileRead", "MPI_File_write": "", "MPI_File_write_c": ""} {
		f := tt.Function(name)
		if got := b.goOf(f); got != want || want != "" && b.of(f).where != inC {
			t.Errorf("%s: Go body %q, place %d", name, got, b.of(f).where)
		}
	}
}

func TestBodyOfNothingIsAnError(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"C function":        {"capi/bodies/a.c": "int spx_c_Sendd(int a)\n{\n"},
		"Go name":           {"capi/a.go": "package main\n\n//spx:body MPI_Sendd\nfunc a(c *call) error { return nil }\n"},
		"no function below": {"capi/a.go": "package main\n\n//spx:body MPI_Send\n\nvar x int\n"},
		"two bodies of one": {"capi/a.go": "package main\n\n//spx:body MPI_Send\nfunc a(c *call) error { return nil }\n\n//spx:body MPI_Send\nfunc b(c *call) error { return nil }\n"},
	} {
		if _, err := findBodies(tree(t, files), tables(t)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// A function whose large form has other parameters does not share a C body.
func TestLargeFormWithOtherParameters(t *testing.T) {
	tt := tables(t)
	b := &bodies{t: tt, c: map[string]bool{"Type_get_contents": true}, goFns: map[string]string{}}
	if got := b.of(tt.Function("MPI_Type_get_contents_c")).where; got != unwritten {
		t.Errorf("MPI_Type_get_contents_c has place %d", got)
	}
}
