package catalog

import "strings"

// alike are groups of words that stand for one another. Words joined by a hyphen are a phrase.
const alike = `
create add new make insert
delete remove erase drop destroy
get retrieve fetch show read view display see
list all enumerate browse index
update edit change modify patch alter amend adjust rename
set configure
search find query look-up look-for filter locate discover
send dispatch deliver
post publish share
start begin launch
stop end finish terminate halt
cancel abort stop halt call-off
copy duplicate clone replicate
move transfer relocate transition
complete finish done tick check-off close
run execute invoke trigger
enable activate turn-on switch-on
disable deactivate turn-off switch-off
approve accept confirm
reject deny decline refuse
archive shelve
restore recover undelete roll-back
revert undo roll-back
pause suspend hold
resume continue
retry rerun again restart
schedule plan
book reserve
join enter
invite add
assign allocate delegate
grant give allow
revoke withdraw
download save get
upload attach put
export dump extract
import load ingest
merge combine join
reply answer respond
follow subscribe watch
unfollow unsubscribe
acknowledge ack
resolve fix solve
buy purchase
pay settle
verify validate check confirm
translate localize
generate create produce
summarize summary
track trace monitor
mute silence
ban block
issue ticket bug defect
task todo to-do
pr pull-request
mr merge-request
pull-request merge-request
repository repo
code source-code
ci pipeline workflow
workflow automation flow
build compile
deploy deployment release
release version
sprint cycle iteration
story epic
board kanban
column list
mail email
inbox mailbox
message msg
dm direct-message private-message
sms text text-message
call phone-call
channel room
chat conversation
meeting video-call conference
calendar agenda event
event appointment
reminder alert
note memo
document doc
file document
folder directory
spreadsheet workbook
sheet tab worksheet
cell range
slide deck
presentation slides deck
page article
wiki knowledge-base
picture image photo
video film clip movie
audio sound
song track music
next skip
subtitle caption
customer client buyer
user account person
person people contact
employee staff worker colleague
member participant
lead prospect
deal opportunity
company organization business
organisation organization
supplier vendor
invoice bill
payment charge
refund money-back
subscription plan
coupon discount voucher promo
order purchase
product item article
stock inventory
cart basket checkout
parcel package shipment
shipping delivery postage
price cost rate
budget spending-limit
expense spending
dispute chargeback
payroll salary wage
pay-stub payslip
vacation holiday time-off leave
out-of-office vacation
candidate applicant
job position vacancy
application app
resume cv
hotel lodging
room accommodation
restaurant diner
place venue spot shop store
contractor freelancer
chart graph plot diagram
objective goal target
reservation booking
flight plane airline
luggage baggage bag
taxi cab ride
route direction
address location
coordinates latitude geocode
weather climate
server machine host
vm virtual-machine
virtual-machine server
container pod
kubernetes k8s cluster
database db
table relation
row record
column field
bucket object-storage
log logs
metric measure
dashboard overview
alert notification alarm monitor
incident outage
error exception crash
vulnerability weakness cve
secret credential password
api-key token
login sign-in log-in
logout sign-out
permission access right
role permission
group team
mfa multi-factor two-factor 2fa
certificate cert ssl tls
domain dns
env environment
variable var
url link
report statistic analytics
statistic stat figure
survey questionnaire poll
question query
form questionnaire
course class lesson
assignment homework
student learner
grade mark
quiz test exam
patient case
prescription medication medicine
doctor practitioner physician
lab test
contract agreement
signature sign
envelope document
ad advert advertisement advertising
campaign newsletter
audience mailing-list
post tweet
light lamp
thermostat heating
property listing
house home
tag label
comment remark
attachment file
template layout
colour color
favourite favorite star
centre center
website site web-site homepage
current now live realtime right-now at-the-moment at-this-moment
temperature warm cold hot degree
visit view traffic
top popular best
swap replace override substitute cover
downtime maintenance outage
water irrigation irrigate
repair maintenance broken
playback player music
defect punch-item snag flaw
hire recruit hiring
fire dismiss terminate
postpone reschedule snooze defer
available availability free
busy availability
rsvp respond
teacher instructor
homework assignment exercise
pupil student
cheque payment
earning revenue income
loss expense
tax vat
debt balance owe
loan credit
transfer wire remit
iban account
refund reimbursement reimburse
voucher gift-card
wishlist favourite
return refund
warehouse store
tenant renter
rent lease
landlord owner
flat apartment home property
car vehicle automobile
trip journey travel ride
fare ticket price
passenger traveller traveler rider
seat place
departure leave
map atlas
nearby near around
distance far
altitude elevation height
storm alert warning
pollution air-quality smog
rain forecast precipitation
nurse practitioner
drug medication
vaccine immunization vaccination shot jab
allergic allergy
checkup appointment
insurance coverage insurer
door lock
camera cctv
heater thermostat heating
motion sensor
humidity sensor humid
lecture course lesson
enrol enroll enrollment registration
semester term
certificate diploma
ad-spend spend
impression reach view
keyword term
follower fan subscriber
hashtag tag topic
trend trending
stream broadcast
episode video
musician artist
record album
listen play
mockup design prototype
font typeface style
palette color
background backdrop
speech voice speak read-aloud
transcribe transcription transcript
dictionary glossary vocabulary
llm language-model model
vector embedding
gpt completion
finetune fine-tune fine-tuning
scrape crawl extract
headline news
weakness vulnerability
sbom software-bill
leak breach exposed
audit-log activity-log history
cdn cache
nameserver dns
hostname domain host
vps virtual-machine
disk volume
backup snapshot
lambda function serverless
firewall security-group
bill cost
uptime service-level
slo service-level-objective
sla service-level
on-call duty
pager on-call
retrospective postmortem
stacktrace stack-trace
toggle switch flip
experiment ab-test split-test
churn retention
conversion funnel
sql query statement
schema structure
dataset data-set
select query
snippet code
trash bin delete
unread read
spam junk suspended
undelivered bounce
optout unsubscribe suppression
landline phone
otp verification-code one-time-code one-time-password passcode
hang-up end terminate
`

// leads to, one way: who says the first means one of the others, not the other way round.
const leadsTo = `
log create record
record create log
file create
register create
write create update post
open create get
raise create
put create upload
order create buy
put-in create
set-up create schedule
schedule create
book create
reserve create book
issue create
report create
insert create append
fill-in update submit
hand-in submit
give grant assign
take remove get
get-rid delete
make generate
draw create
post create send
tell send
say post send
write send
text sms
ring call
phone call
dial call
mail send
ship send
what list
which list
who list
how get
when get
where get
plot query
graph query
latest list
recent list
many list
most top
perform report statistic performance
decline respond
accept respond
invite event
invitation event
hours schedule
tweet publish post
execution run
open-ticket ticket
agenda event
slot availability
yearly annual
who member user
who-changed audit history
who-did audit history
author create
compose create draft
draft create
build create
spin-up create
provision create
set update
put-on add create
clean clear remove
empty clear
fetch download
see view
silence mute
escalate raise
inform notify send
notify send
announce post announcement
charge payment
many list
show list
view list
see list
get list
fetch list
read list
display list
check get list
find get list
search get list
list search get
look get list
tell get
wire transfer
count list
any list
`

// likeFactor is what a synonym counts, and leadFactor what a word counts that is only led to.
const (
	likeFactor = 0.8
	leadFactor = 0.5
)

// An alternative is what a word or phrase may be called as well: stems that must all be there.
type alternative struct {
	stems  []string
	factor float64
}

// maxPhrase is how many words the longest phrase has.
const maxPhrase = 3

// synonyms are the alternatives of each word and phrase, and leads what each leads to, by its stems with a space between.
var (
	synonyms = tableOf(alike, likeFactor, true)
	leads    = tableOf(leadsTo, leadFactor, false)
)

// tableOf reads a table of which each line's first leads to the others, and, both ways, each to each.
func tableOf(text string, factor float64, bothWays bool) map[string][]alternative {
	table := map[string][]alternative{}
	for _, group := range phrases(text) {
		from := group[:1]
		if bothWays {
			from = group
		}
		for i, f := range from {
			key := strings.Join(f, " ")
			for j, to := range group {
				if i != j {
					table[key] = append(table[key], alternative{to, factor})
				}
			}
		}
	}
	return table
}

// phrases are the lines of a table, each member as its stems.
func phrases(table string) [][][]string {
	var lines [][][]string
	for line := range strings.Lines(table) {
		var group [][]string
		for _, member := range strings.Fields(line) {
			var stems []string
			for _, w := range words(member) {
				stems = append(stems, stem(w))
			}
			group = append(group, stems)
		}
		if group != nil {
			lines = append(lines, group)
		}
	}
	return lines
}

// A unit of time after one of spanWords says when, not what.
var (
	spanWords = set("last past next previous coming every per this")
	unitWords = set("second minut hour day week month quarter year")
)

// determiners stand before a noun, so that the word before one is a verb.
var determiners = set("a an the my our your their his her this these some somebody someone all every each another")

// What a question is shaped like: its first of these words tells.
var (
	readWords = set("list show get read view fetch find search see check display browse look lookup retrieve query count what which who whose whom where when " +
		"how why is are was were does did do has have any latest recent current compare download export preview")
	writeWords = set("create add new make insert delete remove erase drop destroy update edit change modify patch set send post publish start begin launch stop end " +
		"cancel copy duplicate move complete finish close run execute enable disable turn activate deactivate approve accept reject deny archive restore " +
		"revert undo pause resume retry rerun schedule book reserve join leave invite assign grant give revoke upload put import merge reply answer respond " +
		"follow unfollow subscribe unsubscribe mute block ban buy pay write open file register upsert rename pin forward mark " +
		"order wire text tell ring dial tweet log track write compose draft raise build generate draw save clear empty reset rotate renew revert replace append " +
		"insert sort convert transfer escalate assign notify announce announcement record capture refund void finalize confirm lock unlock freeze unfreeze " +
		"mute unmute silence snooze acknowledge resolve trigger scale restart reboot resize attach detach purge verify translate transcribe scrape print " +
		"hire fire kick grade submit fill request rate like follow save dim play skip protect enroll enrol register hide remind invite react")
)
