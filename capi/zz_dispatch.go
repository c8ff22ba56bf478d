package main

// bodies has the body of each function by SPX_FN_*.
var bodies = [...]func(*call) error{}
