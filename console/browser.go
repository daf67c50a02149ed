package console

import "strings"

// The names of browsers and systems, and what in a User-Agent tells of them, the telling ones first: each browser says
// that it is the ones before it too.
var (
	browsers = [][2]string{
		{"Edg", "Edge"},
		{"OPR/", "Opera"},
		{"SamsungBrowser", "Samsung Internet"},
		{"Firefox", "Firefox"},
		{"FxiOS", "Firefox"},
		{"CriOS", "Chrome"},
		{"Chrom", "Chrome"},
		{"Safari", "Safari"},
		{"curl", "curl"},
	}
	systems = [][2]string{
		{"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Android", "Android"}, {"CrOS", "ChromeOS"}, {"Windows", "Windows"}, {"Mac OS X", "macOS"}, {"Linux", "Linux"},
	}
)

// browser is what a person knows the browser of that User-Agent by: Firefox on Linux.
func browser(agent string) string {
	find := func(list [][2]string) string {
		for _, known := range list {
			if strings.Contains(agent, known[0]) {
				return known[1]
			}
		}
		return ""
	}
	name, system := find(browsers), find(systems)
	switch {
	case name == "" && system == "":
		return "A browser"
	case name == "":
		return "A browser on " + system
	case system == "":
		return name
	}
	return name + " on " + system
}
