module libspx

go 1.26
