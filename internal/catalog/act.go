package catalog

// An act is what one of the usual verbs does to a thing. Of two tools for the same thing it is the verb that tells which
// is meant, however common the verb is.
type act uint8

const (
	reads act = iota + 1
	makes
	changes
	unmakes
)

var acts = actsOf(map[act]string{
	reads:   "list get fetch retrieve read show view search find query browse describe lookup see check",
	makes:   "create add insert new make register",
	changes: "update edit modify change set patch alter amend adjust rename",
	unmakes: "delete remove destroy erase drop purge",
})

func actsOf(verbs map[act]string) map[string]act {
	out := map[string]act{}
	for a, list := range verbs {
		for w := range set(list) {
			out[w] = a
		}
	}
	return out
}

// actOf is what a tool does by the words of its name, of which the first is the verb, or else the last; 0 for any other verb.
func actOf(name []string) act {
	if len(name) == 0 {
		return 0
	}
	if a := acts[name[0]]; a != 0 {
		return a
	}
	return acts[name[len(name)-1]]
}

// askedAct is what a question asks to do by its first verb; 0 when that is no usual one.
func askedAct(asked []string, s shape) act {
	for _, w := range asked {
		switch a := acts[w]; {
		case a != 0 && (a == reads) == (s != asksToDo):
			return a
		case (readWords[w] || writeWords[w]) && s == asksToKnow:
			return reads
		case readWords[w] || writeWords[w]:
			return 0
		}
	}
	return 0
}

// writeStems are the stems of the verbs that ask for a deed.
var writeStems = func() map[string]bool {
	out := map[string]bool{}
	for w := range writeWords {
		out[stem(w)] = true
	}
	return out
}()
