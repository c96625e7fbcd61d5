/** The shapes of the JSON API that the page uses; docs/api.md describes them. */

export interface Text {
  "zh-TW": string;
  en: string;
}

export interface Ref {
  kind: string;
  namespace?: string;
  name: string;
  uid?: string;
}

export interface Endpoint {
  ip: string;
  ready: boolean;
  pod?: string;
}

/** The reduced form of a Kubernetes object. */
export interface ObjectState {
  ref: Ref;
  labels?: Record<string, string>;
  owner?: Ref;
  created?: string;
  deleting?: boolean;
  node?: string;
  ip?: string;
  status?: string;
  ready?: number;
  containers?: number;
  restarts?: number;
  images?: string[];
  cpu?: string;
  memory?: string;
  unschedulable?: boolean;
  taints?: string[];
  desired?: number;
  actual?: number;
  updated?: number;
  available?: number;
  revision?: string;
  clusterIP?: string;
  type?: string;
  ports?: string[];
  selector?: Record<string, string>;
  service?: string;
  endpoints?: Endpoint[];
}

export type FrameType = "object" | "event" | "audit" | "lab" | "snapshot";

/** One numbered frame of a session's event stream. */
export interface Frame {
  n: number;
  time: string;
  type: FrameType;
  actor: string;
  verb: string;
  object: Ref;
  cause: number | null;
  reason?: string;
  message?: string;
  text?: Text;
  warning?: boolean;
  state?: unknown;
}

export type State = "queued" | "provisioning" | "ready" | "asleep" | "failed" | "ended";

export interface Stage {
  name: string;
  started: string;
  millis: number;
  done: boolean;
}

export interface Status {
  state: State;
  why?: string;
  since: string;
  stage?: string;
  stages?: Stage[];
  problem?: Text;
  sleepsAt?: string;
  queue?: number;
}

export interface Session {
  id: string;
  course: string;
  state: State;
  status: Status;
  driver: string;
  capabilities: string[];
  created: string;
}

export interface SessionFrame {
  type: "session";
  now: string;
  session: Session;
}

export interface ErrorBody {
  error: { code: string; message: string };
}

export type CheckStatus = "met" | "not_met" | "unknown";

export interface CheckResult {
  check: string;
  title: Text;
  status: CheckStatus;
  message: Text;
  object?: string;
  field?: string;
  expected?: string;
  found?: string;
  regressed?: boolean;
}

export interface ExerciseState {
  exercise: string;
  started: boolean;
  done: boolean;
  doneAt?: string;
  checks: CheckResult[];
  /** Exercises that it goes on from and that aren't done in this cluster. */
  waits?: string[];
  hints: number;
  /** What was answered, by check. */
  answers?: Record<string, string>;
  solved?: boolean;
  hintsTotal: number;
  hintTexts: Text[];
}

export interface Operation {
  id: string;
  kind: string;
  done: boolean;
  millis: number;
  problem?: Text;
}

export interface HomeFile {
  path: string;
  size: number;
  folder?: boolean;
  modified: string;
}

export interface EditRequest {
  id: string;
  path: string;
  tab: string;
  at: string;
}

export interface Verdict {
  question: string;
  answer: string[];
  correct: boolean;
  attempts: number;
  options: { id: string; right: boolean; why: Text }[];
  truth?: boolean;
  why?: Text;
}

export interface KitchenState {
  name: string;
  cpu: string;
  memory: string;
  power: boolean;
  cable: boolean;
}

export interface ControlLoop {
  name: string;
  part: "component" | "kubelet" | "controller";
  home: boolean;
}

/** A period that the clock compresses. */
export interface Figure {
  component: string;
  name: string;
  realMillis: number;
  nowMillis: number;
}

export interface Clock {
  speed: number;
  figures: Figure[];
}

export interface EtcdKey {
  key: string;
  createRevision: number;
  modRevision: number;
  version: number;
}

export interface EtcdKeys {
  keys: EtcdKey[];
  more?: boolean;
}

export interface EtcdValue extends EtcdKey {
  /** Base64. */
  value: string;
  size: number;
}

export interface EncryptionState {
  on: boolean;
  provider?: string;
  key?: string;
  resources: string[];
  config?: string;
}
