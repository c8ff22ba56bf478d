package manual

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPage(t *testing.T) {
	p := New("MPI_Send", "3", "January 2, 2006", "libspx 1")
	p.Name("sends a message", "MPI_Send", "MPI_Send_c")
	p.Section("SYNOPSIS")
	p.Include("mpi.h")
	p.Function("int", "MPI_Send", []string{"const void *buf", "n"})
	p.Section("DESCRIPTION")
	p.Text("Sends, e.g. now. See --help: 50 %% of C:\\X. .rc too")
	p.List()
	p.Term("Fa", "a \"b\"")
	p.Text(".first")
	p.EndList()
	p.See([][2]string{{"MPI_Recv", "3"}, {"libspx", "7"}})
	want := `.Dd January 2, 2006
.Dt MPI_SEND 3
.Os "libspx 1"
.Sh NAME
.Nm MPI_Send ,
.Nm MPI_Send_c
.Nd sends a message
.Sh SYNOPSIS
.In mpi.h
.Ft int
.Fo MPI_Send
.Fa "const void *buf"
.Fa \&n
.Fc
.Sh DESCRIPTION
Sends, e.g. now.
See \-\-help: 50 %% of C:\eX. .rc too
.Bl -tag -width 8n
.It Fa "a ""b"""
\&.first
.El
.Sh SEE ALSO
.Xr MPI_Recv 3 ,
.Xr libspx 7
`
	if diff := cmp.Diff(want, p.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
