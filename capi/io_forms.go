package main

// The functions of data access, table 15.1 of MPI-5.0, one a line: what they have in common is in
// io_access.go.

//spx:body MPI_File_read_at
func fileReadAt(c *call) error { return c.access(form{at: explicit}) }

//spx:body MPI_File_iread_at
func fileIreadAt(c *call) error { return c.access(form{at: explicit, nonblock: true}) }

//spx:body MPI_File_read
func fileRead(c *call) error { return c.access(form{at: individual}) }

//spx:body MPI_File_iread
func fileIread(c *call) error { return c.access(form{at: individual, nonblock: true}) }

//spx:body MPI_File_read_shared
func fileReadShared(c *call) error { return c.access(form{at: shared}) }

//spx:body MPI_File_iread_shared
func fileIreadShared(c *call) error { return c.access(form{at: shared, nonblock: true}) }

//spx:body MPI_File_read_at_all
func fileReadAtAll(c *call) error { return c.access(form{at: explicit, collective: true}) }

//spx:body MPI_File_iread_at_all
func fileIreadAtAll(c *call) error {
	return c.access(form{at: explicit, collective: true, nonblock: true})
}

//spx:body MPI_File_read_all
func fileReadAll(c *call) error { return c.access(form{at: individual, collective: true}) }

//spx:body MPI_File_iread_all
func fileIreadAll(c *call) error {
	return c.access(form{at: individual, collective: true, nonblock: true})
}

//spx:body MPI_File_read_ordered
func fileReadOrdered(c *call) error { return c.access(form{at: ordered, collective: true}) }

//spx:body MPI_File_read_at_all_begin
func fileReadAtAllBegin(c *call) error {
	return c.access(form{at: explicit, collective: true, begin: true, name: "MPI_File_read_at_all"})
}

//spx:body MPI_File_read_at_all_end
func fileReadAtAllEnd(c *call) error { return c.end("MPI_File_read_at_all") }

//spx:body MPI_File_read_all_begin
func fileReadAllBegin(c *call) error {
	return c.access(form{at: individual, collective: true, begin: true, name: "MPI_File_read_all"})
}

//spx:body MPI_File_read_all_end
func fileReadAllEnd(c *call) error { return c.end("MPI_File_read_all") }

//spx:body MPI_File_read_ordered_begin
func fileReadOrderedBegin(c *call) error {
	return c.access(form{at: ordered, collective: true, begin: true, name: "MPI_File_read_ordered"})
}

//spx:body MPI_File_read_ordered_end
func fileReadOrderedEnd(c *call) error { return c.end("MPI_File_read_ordered") }

//spx:body MPI_File_write_at
func fileWriteAt(c *call) error { return c.access(form{at: explicit, write: true}) }

//spx:body MPI_File_iwrite_at
func fileIwriteAt(c *call) error {
	return c.access(
		form{at: explicit, write: true, nonblock: true})
}

//spx:body MPI_File_write
func fileWrite(c *call) error { return c.access(form{at: individual, write: true}) }

//spx:body MPI_File_iwrite
func fileIwrite(c *call) error {
	return c.access(
		form{at: individual, write: true, nonblock: true})
}

//spx:body MPI_File_write_shared
func fileWriteShared(c *call) error { return c.access(form{at: shared, write: true}) }

//spx:body MPI_File_iwrite_shared
func fileIwriteShared(c *call) error {
	return c.access(
		form{at: shared, write: true, nonblock: true})
}

//spx:body MPI_File_write_at_all
func fileWriteAtAll(c *call) error {
	return c.access(form{at: explicit, write: true, collective: true})
}

//spx:body MPI_File_iwrite_at_all
func fileIwriteAtAll(c *call) error {
	return c.access(form{at: explicit, write: true, collective: true, nonblock: true})
}

//spx:body MPI_File_write_all
func fileWriteAll(c *call) error {
	return c.access(form{at: individual, write: true, collective: true})
}

//spx:body MPI_File_iwrite_all
func fileIwriteAll(c *call) error {
	return c.access(form{at: individual, write: true, collective: true, nonblock: true})
}

//spx:body MPI_File_write_ordered
func fileWriteOrdered(c *call) error {
	return c.access(form{at: ordered, write: true, collective: true})
}

//spx:body MPI_File_write_at_all_begin
func fileWriteAtAllBegin(c *call) error {
	return c.access(form{at: explicit, write: true, collective: true, begin: true,
		name: "MPI_File_write_at_all"})
}

//spx:body MPI_File_write_at_all_end
func fileWriteAtAllEnd(c *call) error { return c.end("MPI_File_write_at_all") }

//spx:body MPI_File_write_all_begin
func fileWriteAllBegin(c *call) error {
	return c.access(form{at: individual, write: true, collective: true, begin: true,
		name: "MPI_File_write_all"})
}

//spx:body MPI_File_write_all_end
func fileWriteAllEnd(c *call) error { return c.end("MPI_File_write_all") }

//spx:body MPI_File_write_ordered_begin
func fileWriteOrderedBegin(c *call) error {
	return c.access(form{at: ordered, write: true, collective: true, begin: true,
		name: "MPI_File_write_ordered"})
}

//spx:body MPI_File_write_ordered_end
func fileWriteOrderedEnd(c *call) error { return c.end("MPI_File_write_ordered") }
