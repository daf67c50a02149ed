// The console's one script. Every page works without it; with it a page stays
// fresh, a form changes only its own part, and code can be copied.
//
//   data-live="/path"     the part of the page that a stream keeps fresh
//   data-swap="#id"       on a form: put the answer's #id in place of ours
//   data-auto             on a form: send it as one types
//   data-copy             on a button: copy the code beside it
//   data-reveal="id"      on a button: show or hide that password
//   data-dismiss          on a button: close its toast
//   data-onward           on a link: go there, in this page's place
//   data-settle           on a button: take no answer until the page has been in view for a moment
//   data-passkey="/path"  on a button: ask the browser for what that answers, then send its form
//   data-passkeys         what goes where the browser has no passkeys
//
// A stream sends `event: swap` with {"id": "element id", "html": "the new element"}.

const streams = new Map(); // URL → its open EventSource
const held = new Map(); // element id → HTML that waits until nobody is at the old one
let shown = here(); // the address of what the page shows
const hasPasskeys = window.PublicKeyCredential && 'parseCreationOptionsFromJSON' in PublicKeyCredential;
const canHover = matchMedia('(hover: hover)').matches;

// Live regions. A hidden tab holds no stream; each stream begins with the present state.
function listen() {
  const wanted = new Set();
  if (!document.hidden) {
    document.querySelectorAll('[data-live]').forEach((e) => wanted.add(e.dataset.live));
  }
  for (const [url, stream] of streams) {
    if (wanted.has(url)) continue;
    stream.close();
    streams.delete(url);
  }
  for (const url of wanted) {
    if (!streams.has(url)) open(url);
  }
}

function open(url) {
  const stream = new EventSource(url);
  streams.set(url, stream);
  stream.addEventListener('swap', (e) => {
    const { id, html } = JSON.parse(e.data);
    swap(id, html);
  });
  // A cut connection comes back by itself; an error answer ends the source, so ask again later.
  stream.addEventListener('error', () => {
    if (stream.readyState !== EventSource.CLOSED || streams.get(url) !== stream) return;
    streams.delete(url);
    setTimeout(listen, 15000);
  });
}

function swap(id, html) {
  const old = document.getElementById(id);
  if (!old) return;
  if (inUse(old)) {
    held.set(id, html);
    return;
  }
  held.delete(id);
  const box = document.createElement('template');
  box.innerHTML = html;
  const fresh = box.content.getElementById(id);
  if (!fresh) return;
  old.replaceWith(fresh);
  settle();
}

// inUse says whether a person is typing in, standing on, pointing at or marking something in it.
function inUse(part) {
  const marked = getSelection();
  return part.contains(document.activeElement) ||
    (canHover && part.matches(':hover') && part.querySelector('a, button, input, select, textarea')) ||
    (!marked.isCollapsed && part.contains(marked.anchorNode));
}

function release() {
  setTimeout(() => held.forEach((html, id) => swap(id, html)));
}

// A page that comes up under a pointer, or from under a window that closes, may meet a press that was meant for what was
// there before. So an answer counts once the page has been in front for longer than the second press of two takes. From
// then on <html> has data-settled.
let resting;

function unsettle() {
  clearTimeout(resting);
  delete document.documentElement.dataset.settled;
  if (document.hidden) return; // what brings it to view begins again
  resting = setTimeout(() => { document.documentElement.dataset.settled = ''; }, 500);
}

// tooSoon says whether a press of a button is dropped. What a passkey has confirmed was not pressed by mistake: the
// browser's own question, from which the page comes to the front again, stood between.
function tooSoon(form, button) {
  return button && 'settle' in button.dataset && !('settled' in document.documentElement.dataset) && !form.elements.passkey?.value;
}

// begin is what a new page needs.
function begin() {
  unsettle();
  document.querySelectorAll('.toast').forEach(leave);
  const onward = document.querySelector('a[data-onward]');
  if (onward) location.replace(onward.href);
  settle();
}

// settle is what a new piece of page needs.
function settle() {
  if (!hasPasskeys) document.querySelectorAll('[data-passkeys]').forEach((e) => e.remove());
  tellTime();
  listen();
}

// Forms. A second submit of a form under way is dropped; a filter's newer one ends the older.
const underWay = new WeakMap();

document.addEventListener('submit', (e) => {
  const form = e.target;
  if (tooSoon(form, e.submitter)) {
    e.preventDefault();
    return;
  }
  const again = underWay.get(form);
  form.querySelectorAll('[data-reveal]').forEach((b) => reveal(b, false));
  if (again && !('auto' in form.dataset)) {
    e.preventDefault();
    return;
  }
  again?.abort();
  const call = new AbortController();
  underWay.set(form, call);
  const spinner = setTimeout(() => e.submitter?.setAttribute('aria-busy', 'true'), 300);
  if (!form.dataset.swap) return;
  e.preventDefault();
  send(form, e.submitter, call.signal).catch((err) => {
    if (err.name !== 'AbortError') toast('No answer. Check your connection and try again.', true);
  }).finally(() => {
    clearTimeout(spinner);
    e.submitter?.removeAttribute('aria-busy');
    if (underWay.get(form) === call) underWay.delete(form);
  });
});

async function send(form, submitter, signal) {
  const fields = new URLSearchParams(new FormData(form, submitter));
  const reads = form.method === 'get';
  const url = new URL(form.action);
  if (reads) url.search = fields;
  const answer = await fetch(url, { method: form.method, body: reads ? undefined : fields, signal });
  const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
  const fresh = page.querySelector(form.dataset.swap);
  if (answer.redirected || !fresh) {
    arrive(page, answer.url);
    return;
  }
  if (reads) show(url, 'replaceState');
  if (!answer.ok) keepTyped(form, fresh);
  document.querySelector(form.dataset.swap).replaceWith(fresh);
  const wrong = fresh.querySelector('[aria-invalid="true"]');
  if (wrong) goOn(wrong);
  settle();
}

// goOn puts the cursor behind what was typed.
function goOn(field) {
  const { value } = field;
  field.focus();
  field.value = '';
  field.value = value;
}

// arrive shows a whole page that a form led to: fetching it again could cost what it shows once.
function arrive(page, url) {
  show(url, url === location.href ? 'replaceState' : 'pushState');
  document.title = page.title;
  document.body.replaceWith(page.body);
  scrollTo(0, 0);
  const main = document.querySelector('main');
  main.tabIndex = -1;
  main.focus();
  begin();
}

// show puts the address of what the page shows into the history.
function show(url, how) {
  history[how](null, '', url);
  shown = here();
}

function here() {
  return location.pathname + location.search;
}

function keepTyped(form, fresh) {
  for (const { name, value } of form.elements) {
    const field = name && fresh.querySelector(`.input[name="${CSS.escape(name)}"]`);
    if (field && !field.value) field.value = value;
  }
}

let pause;
document.addEventListener('input', (e) => {
  const form = e.target.form;
  if (!form || !('auto' in form.dataset)) return;
  clearTimeout(pause);
  pause = setTimeout(() => form.requestSubmit(), 200);
});

// Buttons.
document.addEventListener('click', (e) => {
  const button = e.target.closest('button');
  if (!button) return;
  if ('copy' in button.dataset) copy(button);
  if ('reveal' in button.dataset) reveal(button);
  if ('passkey' in button.dataset && !button.form.elements.passkey.value) {
    e.preventDefault();
    if (button.ariaBusy !== 'true') passkey(button);
  }
  if ('dismiss' in button.dataset) button.closest('.toast').remove();
  const dialog = document.getElementById(button.getAttribute('commandfor'));
  if (dialog && !('commandForElement' in button)) {
    dialog[button.getAttribute('command') === 'show-modal' ? 'showModal' : 'close']();
  }
});

async function copy(button) {
  const code = button.parentElement.querySelector('pre');
  try {
    await navigator.clipboard.writeText(code.textContent);
  } catch { // no clipboard without https: mark it, so that one key copies it
    getSelection().selectAllChildren(code);
    toast('Marked. Copy it with your keyboard.');
    return;
  }
  toast('Copied');
  word(button, 'Copied');
  setTimeout(() => word(button, 'Copy'), 2000);
}

// passkey puts what the browser makes or signs into the button's form, which is then sent like any other. An empty
// password is left out: the passkey stands in its place.
async function passkey(button) {
  const { form } = button;
  const field = form.elements.passkey;
  if (![...form.elements].every((e) => (e.type === 'password' && !e.value) || e.reportValidity())) return;
  button.ariaBusy = 'true';
  try {
    const answer = await fetch(button.dataset.passkey, { method: 'POST', body: new URLSearchParams(new FormData(form)) });
    if (answer.redirected) {
      location.assign(answer.url);
      return;
    }
    const { create, get, error } = await answer.json();
    if (error) {
      toast(error, true);
      return;
    }
    const made = create
      ? await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(create) })
      : await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(get) });
    field.value = JSON.stringify(made);
    form.requestSubmit(button);
  } catch (err) {
    toast(err.name === 'InvalidStateError' ? 'This device has a passkey for you already.' : 'No passkey was used. Try again.', true);
  } finally {
    button.ariaBusy = null;
  }
}

// word changes the word on a button, and with it the name it is heard by.
function word(button, text) {
  const label = button.querySelector('span');
  if (button.ariaLabel) button.ariaLabel = button.ariaLabel.replace(label.textContent, text);
  label.textContent = text;
}

function reveal(button, show = button.textContent.trim() === 'Show') {
  document.getElementById(button.dataset.reveal).type = show ? 'text' : 'password';
  word(button, show ? 'Hide' : 'Show');
}

function toast(text, failed) {
  const p = document.createElement('p');
  p.className = 'toast';
  if (failed) p.role = 'alert';
  p.append(document.createElement('span'));
  p.firstChild.textContent = text;
  document.getElementById('toasts').append(p);
  leave(p);
}

// leave takes a toast away once it could be read, but not from under a finger.
function leave(p) {
  setTimeout(() => (p.matches(':hover, :focus-within') ? leave(p) : p.remove()), 8000);
}

// Times: the reader's own zone on hover, and words that stay true. Older ones are dates already.
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'long' });

function tellTime() {
  for (const e of document.querySelectorAll('time')) {
    const then = new Date(e.dateTime);
    const since = (Date.now() - then) / 1000;
    const words = 'left' in e.dataset ? left(-since) : ago(since);
    e.title = exact.format(then);
    if (words && !('date' in e.dataset) && e.textContent !== words) e.textContent = words;
  }
}

function ago(s) {
  if (s < 1) return 'now';
  if (s < 30 * 86400) return `${span(s)} ago`;
  return '';
}

function left(s) {
  return s < 1 ? 'now' : `in ${span(s)}`;
}

function span(s) {
  if (s < 60) return `${Math.floor(s)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86400) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86400)} d`;
}

document.addEventListener('visibilitychange', settle);
document.addEventListener('visibilitychange', unsettle);
addEventListener('focus', unsettle);
document.addEventListener('focusout', release);
document.addEventListener('pointerover', release);
addEventListener('pagehide', () => {
  streams.forEach((stream) => stream.close());
  streams.clear();
});
addEventListener('pageshow', (e) => {
  unsettle();
  if (!e.persisted) return; // back from the cache: whatever was under way is over
  document.querySelectorAll('form').forEach((form) => underWay.delete(form));
  document.querySelectorAll('[aria-busy]').forEach((b) => b.removeAttribute('aria-busy'));
  settle();
});
addEventListener('popstate', () => {
  if (here() !== shown) location.reload(); // else only the part of the page that is in view changed, as by #main
});
setInterval(() => {
  tellTime();
  release();
}, 5000);
begin();
