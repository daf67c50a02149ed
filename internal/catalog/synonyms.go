package catalog

import (
	"slices"
	"strings"
)

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
hook webhook callback
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
stop halt shut-down power-off
start power-on boot
restart reboot
copy back-up
invoke call
reset restore
rotate renew replace
renew extend prolong
detach unmount disconnect
attach mount connect
lock secure
unlock open
freeze block suspend
unfreeze unblock
hide conceal
pin stick
forward pass-on redirect
import bring-in
export take-out
upload put-in
join participate attend
leave quit exit
kick expel evict
suggest propose recommend
proposal offer quote
bid offer tender
rate score
rating score review
review appraisal evaluation
feedback review comment
upvote like
vote poll ballot
measure gauge
calculate compute
estimate quote forecast
compare diff difference
preview draft simulate dry-run
trial preview
validate lint
anonymize redact pseudonymize
purge flush invalidate
crop cut trim
enlarge upscale enhance
resize scale
promote publish
ship dispatch
fulfill ship
capture collect
reconcile match
subscriber reader
attendee participant visitor
registrant sign-up
visitor guest
guest visitor customer
organizer host
moderator admin
admin administrator
owner holder
manager supervisor boss
lawyer attorney counsel
engineer developer programmer
author writer
crew team
staff personnel
department division
office workplace
headquarters office
branch location
firm company
partner affiliate
shopper customer buyer
merchant vendor seller
wholesaler supplier
courier carrier
recipient addressee receiver
sender originator
signer signatory
pet animal
cattle livestock
farm agriculture
harvest yield
crop plant
greenhouse field
acreage field
tax-form tax-return
receipt proof-of-purchase
statement report
bookkeeping accounting ledger
general-ledger ledger
chart-of-accounts ledger-account
journal ledger
iou debt
withholding garnishment
bonus payment
wage pay
paycheck pay-stub
compensation salary
perk benefit
pension benefit
leave absence
sick-leave time-off
day-off time-off
days-off time-off
overtime timesheet hour
worktime timesheet
timecard timesheet
reporting-line org-chart
hierarchy org-chart
onboarding enroll
opening position
applicant application
talk interview
screening interview
headcount employee
mailing newsletter
mailshot campaign
blast campaign
drip automation
routine automation
recipe automation
macro template
boilerplate template
saved-reply canned-reply canned-response
faq help-article
knowledge-article help-article
helpdesk support
complaint ticket case
inquiry ticket
request ticket
csat satisfaction
nps satisfaction survey
answer response
reply response
submission entry response
entry record
photo picture snapshot
screenshot snapshot capture
thumbnail preview
icon image
avatar photo
artwork image
drawing plan blueprint
blueprint drawing
sketch drawing
wireframe prototype mockup
artboard frame
screen frame
component widget
widget chart
diagram chart
kpi metric
benchmark metric
telemetry metric
timeseries metric
span trace
logline log-event
probe synthetic-test
health-check monitor
ping probe
alarm alert
rule policy
guideline policy
access acl
entitlement permission
privilege permission
scope permission
passphrase password
pin code
credential login
sso sign-in
session login-session
identity user
authenticator multi-factor-device
firewall-rule security-group
key secret
keystore vault
safe vault
instance virtual-machine
droplet virtual-machine
ec2 virtual-machine
s3 bucket
blob object
drive volume
storage bucket disk
hard-disk volume disk
hard-drive volume disk
ssd volume
proxy load-balancer
balancer load-balancer
workload pod deployment
replica pod
manifest deployment
rollout deployment
job task
cronjob cron-job
crontab cron-job
setting config configuration
preference setting
option setting
parameter setting variable
property field attribute
attribute field
characteristic property
trait attribute
dimension attribute
enum option
spreadsheet sheet
grid table
tab sheet
formula cell
line row
entry row
block paragraph
paragraph text
heading section
chapter section
section part
agenda schedule
itinerary trip
timetable schedule
roster schedule shift
rota shift
shift duty
slot time
deadline due-date
due deadline
milestone deadline goal
okr goal objective
roadmap timeline
backlog issue
ticket card
card task
todo-list checklist
checklist to-do
sub-item subtask
effort worklog
logged-time worklog time-entry
tracked-time time-entry worklog
timer time-entry
followers watchers
workspace project
folder section
catalog collection
catalogue collection
category collection
sku variant
variation variant
size variant
goods product
merchandise product
inventory-level stock-level
stock-level inventory
return-label shipping-label
waybill shipping-label
consignment shipment
delivery shipment
postcode zip zip-code
customs declaration
duty customs
collection pickup
carton parcel
box parcel
storefront shop
discount-code promo-code coupon-code voucher
rebate discount
present gift
bill check
card-payment charge
direct-debit payment
settlement payout
disbursement payout
withdrawal payout
recurring subscription
membership subscription
tier plan
package plan
metered usage
consumption usage
quota limit usage
allowance limit
cap limit
limit threshold
dunning collection
overdue unpaid
arrears overdue
credit-memo credit-note
quotation quote estimate
income-statement profit-and-loss
profit earning income
turnover revenue
funds money balance
cash money
money fund
bank institution
account-holder identity
statement-line bank-transaction
booking appointment
stay booking
check-in arrive arrival
check-out departure
suite room
cleaning housekeeping
hotel property
inn hotel
motel hotel
hostel hotel
bistro restaurant
eatery restaurant
dish meal menu
food menu dish
dinner table reservation
diner guest
queue waitlist
waiting-list waitlist
ticket flight
airfare flight-offer
aircraft plane
airplane plane flight
seating seat
suitcase luggage baggage
layover flight
airport terminal
chauffeur driver
cabbie driver
pickup pick-up
lost-and-found lost-item
way route
path route
travel-time distance
drive-time distance
poi place
landmark place
gps coordinates location
reverse-geocode reverse
street address
outlook forecast
sunshine weather
wind weather condition
smoke air-quality
flood warning alert
meetup event
gig event concert
concert event
conference event
convention conference
fair event
festival event
admission ticket
entrance admission ticket
stadium venue
hall venue room
webcast webinar
seminar webinar
recording video
minutes summary
recap summary
digest summary
overview summary
abstract summary
transcript text
caption transcript
livestream live-stream broadcast
live-stream live-broadcast
clip video
reel story
feed timeline
dm message
mention tagged
repost share retweet
retweet repost
hashtag keyword
trending popular
band artist
singer artist
tune song track
mix playlist
setlist playlist
library collection
podcast episode
mp3 audio
voiceover speech
tts speech text-to-speech
text-to-speech speech
speech-to-text transcription
dictation transcription
ocr text
machine-translation translation
locale language
terminology glossary
string translation-key
phrase text
neural-network model
ai model
fine-tuned-model model
training fine-tuning
inference completion
prompt completion
corpus dataset
vectorize embedding
toxicity moderation
webpage web-page
site website
sitemap site-map
crawler crawl
spider crawl
google web-search search
internet web
serp web-result
newspaper news
clinic hospital
physician doctor
visit appointment
medicine drug prescription
pill medication
bloodwork lab-result
blood-test lab-result
test-result lab-result
allergen allergy
jab vaccine
medical-record patient
claim insurance
lamp bulb
brightness dim
ac thermostat
air-conditioning thermostat
lock bolt
doorbell camera
webcam camera
scene preset
detector sensor
curriculum course
module course lesson
lesson class
homework task
essay submission assignment
paper submission
exam assessment
assessment quiz
score grade
notice announcement
bulletin announcement
lecturer instructor
banner ad
creative ad
bid-strategy bid
lookalike audience
retargeting audience
search-term keyword
ppc ad
clause provision
deal agreement
nda contract
covenant obligation
lawsuit matter case
litigation matter
dossier matter
retainer contract
package dependency
library dependency
third-party dependency
cve vulnerability
advisory vulnerability
leaked exposed
hardcoded exposed
pentest scan
audit scan inspection
inspection check
site-visit inspection
construction building
building site
subcontractor contractor
variation-order change-order
snagging punch-item
site-diary daily-log
journal daily-log log
estate property
real-estate property
viewing showing
tour showing
lodger tenant
sublet lease
appraisal valuation
valuation worth value
value worth
diff compare
changelog release-note
changeset commit
hash commit sha
trunk branch
mainline branch
patch pull-request
build-log log
build pipeline
stage step
step job
agent runner
executor runner
artifact build
docs documentation
documentation wiki
readme documentation
handbook wiki
manual documentation
draft unsent
autoreply vacation-responder
auto-reply vacation-responder
autoresponder vacation-responder
footer signature
mail-filter filter
blacklist suppression
blocklist suppression
deliverability delivery bounce
mailer email
handle username
nickname name
topic subject
subject title
title name
heading title
emoticon emoji
smiley emoji
group-chat channel
server guild
huddle call
voice-call call
ringtone sound
voice-message voicemail
answering-machine voicemail
conference-call conference
mobile phone
cell phone
cellphone phone
telephone phone
presence status
online presence available
online-status presence
nudge reminder
bookmark favorite
reopen re-open
revert back-out undo
rerun re-run run-again
resend send-again
compare contrast
protect guard secure
watch observe follow
release unveil
advance progress promote
transition progress status
finalize seal conclude
reactivate resubscribe
fulfill process pack
adjust correct
optimize improve fastest
autocomplete suggest complete
respond accept decline
reorder rearrange
append add-to
clear blank
sort order arrange
win won close-won
lose lost close-lost
convert turn-into
refresh reload
snooze later
anonymize forget gdpr
deny disapprove
exec shell
drain evacuate
scale replica resize
cordon unschedulable
ignore dismiss
dismiss false-positive
explain query-plan
moderate hide approve
skip forward next
upscale sharpen
award accept
withdraw unlist off-the-market
deactivate offboard
expire force
reset forgot forgotten
terminate lay-off dismiss fire
submit hand-in turn-in
grade mark score
dim darken brighter
activate run apply
screenshot picture
scrape text content
price cost
rate stars
sync refresh update
match pair link
freeze block lost stolen
reimburse pay-back
chargeback contest
evidence proof
capture charge collect
void invalidate cancel
retire sunset
upgrade version
transfer hand-over
merge duplicate deduplicate dedupe
enroll put-into sign-up
assign give hand-to
mute quiet silent
mark flag
unread new
draft unfinished
trash throw-away
star favorite
fork copy
escalate urgent
acknowledge take
page pager incident
outage down
lag slow latency
latency duration
broken failing
failed failure error
failure fail
crash stack-trace
commit change
diff change
review approve
maintainer owner
collaborator member collaboration
access permission grant collaboration
readable permission
shared share
share permission link
revision version history
older version revision
previous version
backup restore
trial trial-end
seat quantity
renewal renew
arrival check-in
nightly rate
availability slot free
party guest
table reservation
eat restaurant
hungry restaurant
sleep room
travel flight
fly flight
delay status
gate flight-status
drive route
walk route
traffic route
neighborhood place
nearest nearby place
degree temperature
umbrella forecast
snow forecast
hurricane alert
hot temperature
low tide
high tide
sea tide
clock time-zone
local-time time-zone
hour time
busy free
free busy-time available
invitee attendee
guest attendee invitee
no-show absent
absent time-off
attend participant
joined participant
signup registrant enrollment
vote poll
panelist speaker
slide page
presenter speaker
notes note
sum total
average summary
total summary
pivot summary
wiki page
story article
sell deal
sale deal
sales deal
revenue sale opportunity
pipeline stage
lead contact
prospect lead opportunity
client contact account
person contact
company account organization
firm account
activity call meeting task
ticket question
agent staff
sla promise
visitor user
chat message
respondent answer
hire candidate
cv candidate
vacancy job-posting
job-ad job-posting
job-opening job-posting
job-offer contract-offer
reports-to org-chart
manager org-chart
insurance benefit
day-off leave
freelancer contractor-payment
w2 tax-form
1099 tax-form
deposit account
sign signature envelope
contract document agreement
paperwork document
bill cost-report
spend cost expense
firewall rule
identity policy
worker node
configuration config-map
rollback roll-back
url domain address
dns-entry dns-record
mx dns-record
cname dns-record
https certificate ssl
cached cache
uptime monitor
graph dashboard
watch monitor
log-line log-event
slow trace
on-call escalation
override swap
retro postmortem
exception error-issue
bug error-issue issue
minified source-map
replay recording
behaviour event
behavior event
click event
rollout feature-flag
flag feature-flag
variant experiment
a-b experiment
segment cohort audience
keyword search-keyword
source referrer
referral referrer
statement sql
column schema field
plugin extension
addon extension
cell field
run execution
follower audience
block mute
picture post
watch-time video-analytics
subtitles caption
song track
listen listening
heard listening
play resume
queue next
font style
color style
logo image
draw image
voice speech
dictate transcription
language translation
translate translation
word text
neural model
gpu inference
prompt text
harmful moderation
website web-page
headline news-article
sick patient
shot immunization
bloods lab-result
medicine prescription
bulb light
room sensor
warm thermostat
colder thermostat
student enrollment
classmate enrollment
pupil enrollment
homework submission
exam quiz
buyer order
entry admission
ad-copy ad
advert campaign
impression performance
staff user
login user
second-factor multi-factor
device session
secret item
login vault-item
leak breach-report
hacked breach
cve issue
package vulnerability
lawyer billable
legal matter
law matter
soil ground
sow plant
seed crop
cow livestock-animal
sheep livestock-animal
pig livestock-animal
horse livestock-animal
defect issue
blueprint plan
weather log
danger safety
hazard safety
house listing
flat listing
apartment listing
home listing
buyer offer
tenant lease
mortgage loan
leak maintenance-request
plumbing maintenance
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
increase update edit change modify
decrease update edit change modify
raise update
lower update edit change modify
reduce update edit change modify
extend update
shorten update edit change modify
fix update edit
correct update edit change modify
replace update
switch update change
reword update edit change modify
revise update edit change modify
rewrite update edit change modify
overwrite update replace
tweak update edit change modify
customize update set
reassign assign update
bump update
toggle enable disable update
turn-on activate enable toggle
turn-off deactivate disable toggle
define create add
design create
establish create
introduce create add
launch create
init create
initialize create
instantiate create
make-up create
come-up create
sign-up create register subscribe
sign-someone create
onboard create add
enter create add
input create add
append create
log create
jot create
jot-down create add
write-down create add
note-down create add
store create save upload
keep create save
save create
save-to create add
put-on create
place create
issue send
issue-new create
request create
apply create
apply-for create
ask create
ask-for create request
submit create
commission create
hire create
throw-away delete remove
throw-out delete remove
discard delete remove
dispose delete remove
eliminate delete remove
wipe delete remove clear
scrap delete remove
take-off remove delete
take-away remove delete
take-out remove
take-down delete remove
tear-down delete remove
unlink remove delete detach
unassign remove update
uninstall remove delete
cut remove delete
kill stop terminate delete
nuke delete remove
withdraw cancel delete
revoke delete remove
retire delete archive
decommission delete
deregister delete remove
unregister delete remove
strip remove
release delete
bring-back restore
get-back restore
put-back restore
give-back release return
hand-back return release
carry-out run execute
kick-off start run
fire-off trigger send
set-off trigger
wind-up stop end
wrap-up complete close end
call-off cancel
back-out cancel revert
drop-out cancel leave
sign-off approve
green-light approve
okay approve
ok approve
turn-down reject deny
veto reject
nag send reminder
look-at get
look-into get
open-up get
pull get fetch
pull-up get list
bring-up get
inspect get describe
examine get
review get list
peek get
consult get
monitor get list
track get
know get
learn get
detail get
details get
info get
information get
metadata get describe
content get
contents get
particulars get
status get
state get
much get
long get
old get
where get list
who list
exist list
exists list
available list
inventory list
overview list
roster list
existing list
everything list
every list
all-the list
which-of list
hunt search find
seek search find
match search
matching search
named search find
called search find
containing search find
contains search find
look-up get search find
pick find
spot find
trace find
shortlist list
email send
message send
notify send
remind send create
broadcast send publish
reach-out send
hand-over transfer assign
pass transfer assign
hand transfer
shift move
put-into move add
drag move
push move
reorganize reorder move
rearrange reorder move
sort reorder
rank list
regenerate rotate reset create
try-again retry
redo retry
resubmit retry resend
redeploy restart rerun deploy
rebuild rerun retry
convert export
print download
get-copy download
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
				if i != j && !slices.ContainsFunc(table[key], func(a alternative) bool { return slices.Equal(a.stems, to) }) {
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
			if stems != nil {
				group = append(group, stems)
			}
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
