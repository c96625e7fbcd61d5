/** The service worker of the page of quizzes: what was loaded once is there without a network. It
 * touches that page, its assets and its questions, and nothing else. */

interface LongEvent extends Event {
  waitUntil(p: Promise<unknown>): void;
}
interface RequestEvent extends LongEvent {
  readonly request: Request;
  respondWith(r: Promise<Response>): void;
}
interface Worker {
  addEventListener(type: "install" | "activate", f: (e: LongEvent) => void): void;
  addEventListener(type: "fetch", f: (e: RequestEvent) => void): void;
  skipWaiting(): Promise<void>;
  readonly clients: { claim(): Promise<void> };
  readonly location: Location;
}

const worker = self as unknown as Worker;
const cacheName = "quizzes";
const page = "/quizzes";
const data = "/api/v1/quizzes";
/** How long a network that says nothing may hold up what the cache has. */
const patience = 5000;

worker.addEventListener("install", (e) => e.waitUntil(Promise.all([fresh(page), fresh(data), worker.skipWaiting()])));
worker.addEventListener("activate", (e) => e.waitUntil(worker.clients.claim()));
worker.addEventListener("fetch", (e) => {
  const url = new URL(e.request.url);
  if (e.request.method !== "GET" || url.origin !== worker.location.origin) return;
  if (url.pathname.startsWith("/assets/")) e.respondWith(asset(e.request));
  else if (url.pathname === page || url.pathname === data) e.respondWith(newest(e, url.pathname));
});

/** Fetches something and keeps it, and of a page the assets that it names in place of former ones. */
async function fresh(path: string, request: Request | string = path): Promise<Response> {
  const r = await fetch(request);
  if (!r.ok || r.redirected) return r;
  const cache = await caches.open(cacheName);
  if (path === page) {
    const wanted = new Set((await r.clone().text()).match(/\/assets\/[\w.-]+/g));
    for (const kept of await cache.keys()) {
      const name = new URL(kept.url).pathname;
      if (name.startsWith("/assets/") && !wanted.delete(name)) await cache.delete(kept);
    }
    await cache.addAll([...wanted]);
  }
  await cache.put(path, r.clone());
  return r;
}

/** The newest there is: of the network, or what was kept when that fails or says nothing. */
async function newest(e: RequestEvent, path: string): Promise<Response> {
  const kept = await (await caches.open(cacheName)).match(path);
  const coming = fresh(path, e.request);
  if (!kept) return coming;
  e.waitUntil(coming.catch(() => undefined));
  const late = new Promise<Response>((resolve) => setTimeout(() => resolve(kept.clone()), patience));
  return Promise.race([coming, late]).catch(() => kept);
}

/** Assets never change under their name. */
async function asset(request: Request): Promise<Response> {
  return (await (await caches.open(cacheName)).match(request, { ignoreSearch: true, ignoreVary: true })) ?? fetch(request);
}
