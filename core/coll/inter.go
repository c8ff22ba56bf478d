package coll

// inter are the schedules on intercommunicators.
var inter [Kinds]func(*builder)
