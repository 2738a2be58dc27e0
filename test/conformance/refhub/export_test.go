package refhub

// Decisions lists the faults that are planted at a decision, not by a datum.
func Decisions() []Fault { return Faults()[len(entries()):] }
