/** A typed list of listeners. */
export class Emitter<Events extends Record<string, unknown>> {
  private readonly listeners = new Map<keyof Events, Set<(v: never) => void>>();

  on<K extends keyof Events>(name: K, f: (v: Events[K]) => void): () => void {
    let set = this.listeners.get(name);
    if (!set) this.listeners.set(name, (set = new Set()));
    set.add(f as (v: never) => void);
    return () => set.delete(f as (v: never) => void);
  }

  emit<K extends keyof Events>(name: K, v: Events[K]): void {
    for (const f of this.listeners.get(name) ?? []) (f as (v: Events[K]) => void)(v);
  }
}
