package web

// icons is the one set: 16 px, stroke 1.5, drawn by icon. An icon always stands
// beside a word or in a control that has a name.
var icons = map[string]string{
	"activity":   `<path d="M1.5 8h3l2-5 3 10 2-5h3"/>`,
	"agent":      `<path d="m3 4.5 3.5 3.5L3 11.5M8.5 12H13"/>`,
	"ask":        `<path d="M2 9.5h3.5l1 2h3l1-2H14M2 9.5 4 3h8l2 6.5V13H2z"/>`,
	"back":       `<path d="M3 6h6.5a3.5 3.5 0 0 1 0 7H6M3 6l3-3M3 6l3 3"/>`,
	"build":      `<path d="M8 1.8 14 5v6l-6 3.2L2 11V5zM2 5l6 3.2L14 5M8 8.2v6"/>`,
	"chevron":    `<path d="m6 4 4 4-4 4"/>`,
	"clock":      `<circle cx="8" cy="8" r="6"/><path d="M8 4.5V8l2.5 1.5"/>`,
	"close":      `<path d="m4 4 8 8m0-8-8 8"/>`,
	"connection": `<path d="M6 2v3m4-3v3M4 5h8v2.5a4 4 0 0 1-8 0zm4 6.5V14"/>`,
	"copy":       `<path d="M5.5 5.5h8v8h-8zm5 0v-3h-8v8h3"/>`,
	"done":       `<path d="M3 8.5 6.5 12 13 4.5"/>`,
	"exit":       `<path d="M6.5 2.5h-4v11h4M9.5 4.5 13 8l-3.5 3.5M13 8H6"/>`,
	"eye":        `<path d="M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8z"/><circle cx="8" cy="8" r="2"/>`,
	"find":       `<circle cx="7" cy="7" r="4.5"/><path d="M10.5 10.5 14 14"/>`,
	"globe":      `<circle cx="8" cy="8" r="6"/><path d="M2 8h12M8 2c4 4 4 8 0 12M8 2C4 6 4 10 8 14"/>`,
	"home":       `<path d="M2.5 7 8 2.5 13.5 7v6.5h-4v-4h-3v4h-4z"/>`,
	"info":       `<circle cx="8" cy="8" r="6"/><path d="M8 7.5V11m0-6v.1"/>`,
	"key":        `<circle cx="5" cy="10.5" r="3"/><path d="M7.2 8.3 13 2.5M10.5 5l2 2"/>`,
	"lock":       `<path d="M3.5 7h9v6.5h-9zm2 0V5a2.5 2.5 0 0 1 5 0v2"/>`,
	"members":    `<circle cx="6" cy="5.5" r="2.5"/><path d="M1.8 13.5c.3-2.6 2-4 4.2-4s3.9 1.4 4.2 4m.3-10.3a2.5 2.5 0 0 1 0 4.6M12 9.8c1.3.6 2 1.9 2.2 3.7"/>`,
	"menu":       `<path d="M2 4.5h12M2 8h12M2 11.5h12"/>`,
	"more":       `<path d="M3.5 8h.01M8 8h.01M12.5 8h.01"/>`,
	"plan":       `<circle cx="4" cy="4" r="1.75"/><circle cx="4" cy="12" r="1.75"/><circle cx="12" cy="8" r="1.75"/><path d="M5.75 4.3c3 0 2 3.2 4.5 3.5M5.75 11.7c3 0 2-3.2 4.5-3.5"/>`,
	"play":       `<path d="M4.5 3v10l8-5z"/>`,
	"plus":       `<path d="M8 3v10M3 8h10"/>`,
	"settings":   `<path d="M2 5h6m4 0h2M2 11h2m4 0h6"/><circle cx="10" cy="5" r="2"/><circle cx="6" cy="11" r="2"/>`,
	"stop":       `<path d="M5.2 2h5.6L14 5.2v5.6L10.8 14H5.2L2 10.8V5.2z"/>`,
	"switch":     `<path d="m5 6 3-3 3 3m-6 4 3 3 3-3"/>`,
	"tool":       `<path d="M10.5 2.5a3.5 3.5 0 0 0-3.3 4.7l-4.7 4.7 1.6 1.6 4.7-4.7a3.5 3.5 0 0 0 4.5-4.4L11 6.7 9.3 5l2.3-2.3a3.5 3.5 0 0 0-1.1-.2z"/>`,
	"upstream":   `<path d="M8 11V2.5M4.5 6 8 2.5 11.5 6M3 13.5h10"/>`,
	"warn":       `<path d="M8 2 14.5 13.5h-13zm0 4.5v3m0 2.1v.1"/>`,
	"write":      `<path d="m3 13 .7-3 7-7L13 5.3l-7 7zM9.5 4.2l2.3 2.3"/>`,
}

// arts are the drawings of empty states: the same plant, further along or cut back.
var arts = map[string]string{
	"stock":  `<path d="M7 36h42"/><path d="M25 36v-9l6-4v13"/>`,
	"stakes": `<path d="M7 36h42"/><path d="M12 36v-4m8 4v-4m8 4v-4m8 4v-4m8 4v-4"/>`,
	"fallen": `<path d="M7 36h42"/><path d="M25 36v-9l6-4v13"/><path d="M37 33c2-3.5 6-4 9-1-2 3.5-6 4-9 1zM34 36l3-3"/>`,
}
