/** Tests for clients of LLMs: a mock server, and a check of how a client puts streams together. */

// Scenarios

/** Fragments of random lengths between two numbers of characters. */
export interface RandomSplit {
  random: [least: number, most: number];
}

/** How a text is cut into fragments: a rule, a number of characters, or the fragments. */
export type Split =
  | "whole"
  | "chars"
  | "words"
  | number
  | RandomSplit
  | readonly string[];

/** A number with a unit, such as `20ms` or `1.5s`. */
export type Duration = string;

/** A part of a reply, with the keys of a scenario file. */
export interface Part {
  readonly [key: string]: unknown;
}

export interface FragmentOptions {
  /** How the value is cut into fragments; whole by default. */
  split?: Split;
  /** The pause between fragments. */
  every?: Duration;
}

export interface Citation {
  url?: string;
  title?: string;
  cited_text?: string;
}

export interface TextOptions extends FragmentOptions {
  citations?: readonly Citation[];
  logprobs?: boolean | readonly object[];
  /** The service's opaque value, which clients send back. */
  signature?: string;
}

export interface ReasoningOptions extends FragmentOptions {
  signature?: string;
  /** Whether the text is a summary of hidden reasoning. */
  summary?: boolean;
}

export interface ToolOptions extends FragmentOptions {
  /** The id of the call; by default it is derived from the scenario's seed. */
  id?: string;
  /** The free text for a custom tool, in place of arguments. */
  input?: string;
  signature?: string;
  /** Whether the arguments may be text that is no JSON object. */
  malformed?: boolean;
  /** Whether the client is not to run the call. */
  refused?: boolean;
}

export interface ServerToolOptions extends FragmentOptions {
  id?: string;
  name?: string;
  input?: unknown;
  output?: unknown;
}

/** The bytes of an image or sound, and their media type. */
export interface MediaSource {
  base64: string;
  type: string;
}

export interface ImageOptions {
  every?: Duration;
  signature?: string;
}

export interface AudioOptions extends FragmentOptions {
  transcript?: string;
  /** How many bytes of the sound a fragment has; default: all. */
  fragment_bytes?: number;
  signature?: string;
}

export interface ParallelOptions {
  /** The index of a call for each fragment. */
  order: readonly number[];
}

export interface StreamErrorOptions {
  type?: string;
  code?: string;
}

export interface FrameOptions {
  /** Whether it is sent before the first event of the API. */
  first?: boolean;
}

export interface FrameFields {
  data?: unknown;
  event?: string;
  id?: string;
  retry?: number;
  comment?: string;
  raw?: string;
}

export function text(value: string, options?: TextOptions): Part;
export function reasoning(value: string, options?: ReasoningOptions): Part;
export function refusal(value: string, options?: FragmentOptions): Part;

/** A tool call. `args` is an object, or text that is sent verbatim; without it the call has none. */
export function tool(name: string, args?: object | string | null, options?: ToolOptions): Part;

/** A call of a tool that the service runs itself, such as `web_search`, with its result. */
export function serverTool(kind: string, options?: ServerToolOptions): Part;

export function image(source: MediaSource, options?: ImageOptions): Part;

/** Sound; `split` cuts its transcript. */
export function audio(source: MediaSource, options?: AudioOptions): Part;

/** Tool calls whose fragments alternate. `order` has the index of a call for each fragment. */
export function parallel(...calls: Part[]): Part;
export function parallel(...callsAndOrder: [...Part[], ParallelOptions]): Part;

/** Parts whose fragments alternate. `order` has the index of a part for each fragment. */
export function interleaved(parts: readonly Part[], order: readonly number[]): Part;

export function pause(duration: Duration): Part;

export interface GateOptions {
  /** After which the answer goes on, and the verdict is bad; default: `30s`. */
  limit?: Duration;
}

/** A place at which the answer waits until the test calls `session.release(name)`. */
export function gate(name: string, options?: GateOptions): Part;

/** One server-sent event that is sent verbatim over one API. */
export function frame(api: string, fields: FrameFields, options?: FrameOptions): Part;

/** A part or an event of one API, as it is sent. */
export interface NativeValue {
  readonly type: string;
  readonly [key: string]: unknown;
}

/** A part that only one API has, in the form of that API: an object with its `type`. */
export function native(api: string, value: NativeValue): Part;

/** An error inside the stream, which ends it. */
export function error(message?: string, options?: StreamErrorOptions): Part;

/** An answer made from the request. */
export function auto(): Part;

/** A gate as a key of a turn, with its limit. */
export interface Gate extends GateOptions {
  name: string;
}

/** A turn with the keys of a scenario file, all of them. Parts of `reply` may be strings. */
export interface Turn {
  reply?: string | Part | ReadonlyArray<string | Part>;
  name?: string;
  request?: object;
  when?: object | readonly object[];
  go_to?: string;
  one_of?: readonly object[];
  times?: number;
  repeat?: boolean;
  finish?: string;
  finish_raw?: string;
  stop_sequence?: string;
  usage?: object | "none";
  obey?: readonly string[];
  choices?: readonly object[];
  timing?: object;
  /** Before which the whole answer waits, with status and headers; see `session.release`. */
  gate?: string | Gate;
  http?: number | object;
  retry_after?: Duration;
  error?: object;
  attempts?: readonly object[];
  fault?: string | object | readonly unknown[];
  job?: object;
  hears?: string | object;
  speech?: "tone" | "silence" | "none";
  headers?: object;
  service_tier?: string;
  fingerprint?: string;
  template?: boolean;
  extra?: object;
  wire?: object;
  expect?: object;
  recorded?: string | object;
  answer?: object;
  client?: readonly object[];
  service?: readonly object[];
}

export interface HttpErrorOptions {
  message?: string;
  type?: string;
  code?: string;
  headers?: Record<string, string>;
  retryAfter?: Duration;
}

/** The keys of a scenario file at its top level. */
export interface ScenarioKeys {
  /** The name; by default `inline`, `inline-2` and so on. */
  scenario?: string;
  description?: string;
  apis?: readonly string[];
  match?: "any" | object;
  /** What MCP servers answer while it plays: entries by server. */
  mcp?: Readonly<Record<string, readonly object[]>>;
  tools?: readonly object[];
  seed?: number | string;
  defaults?: object;
  then?: "restart";
  /** Whether each turn answers once, in order, also where a conversation begins anew. */
  in_order?: boolean;
  ids?: "any";
}

/** A scenario file as a value. */
export interface ScenarioFile extends ScenarioKeys {
  readonly turns: readonly Turn[];
}

/** A conversation: a plain value that JSON.stringify makes a scenario file of. */
export class Scenario implements ScenarioFile {
  constructor(keys: ScenarioFile);
  readonly scenario?: string;
  readonly match?: "any" | object;
  readonly turns: readonly Turn[];
  /** Adds a turn with these parts; a string is text. Returns a new scenario. */
  reply(...parts: Array<string | Part>): Scenario;
  /** Adds a turn that is an HTTP error. Returns a new scenario. */
  httpError(status: number, options?: HttpErrorOptions): Scenario;
  /** Adds a turn with the keys of a scenario file. Returns a new scenario. */
  turn(keys: Turn): Scenario;
  /** Replaces keys of the scenario. Returns a new scenario. */
  with(keys: ScenarioKeys): Scenario;
}

/** A scenario that answers any request with these parts; a string is text. */
export function reply(...parts: Array<string | Part>): Scenario;

/** A scenario that answers any request with an HTTP error. */
export function httpError(status: number, options?: HttpErrorOptions): Scenario;

/** A scenario that answers any request with this turn. */
export function turn(keys: Turn): Scenario;

/** A scenario from elsewhere, such as a JSON file; the server judges its keys. */
export interface ParsedScenario {
  readonly turns: readonly object[];
  readonly [key: string]: unknown;
}

/** YAML text, or a scenario as a value. */
export type ScenarioSource = string | Scenario | ParsedScenario | McpServer;

/** An MCP server, with the keys of a document `mcp: NAME`. */
export interface McpServer {
  mcp: string;
  description?: string;
  tools?: readonly object[];
  instructions?: string;
  revisions?: readonly string[];
  calls?: readonly object[];
}

// The server

export interface StartOptions {
  /** Files, folders, YAML texts (with a line end) or values. Default: none; sessions have theirs. */
  scenarios?: ScenarioSource | readonly ScenarioSource[];
  /** A server that runs already, such as `http://127.0.0.1:8080`; then none is started. */
  url?: string;
  /** The path of `mockllm`, or the words of a command. Default: it is searched. */
  command?: string | readonly string[];
  /** Default: a free one. */
  port?: number;
  /** Further options of `mockllm serve`. */
  args?: readonly string[];
  /** Where the command runs. */
  cwd?: string;
  /** The environment of the command. */
  env?: Readonly<Record<string, string | undefined>>;
  /** Gets each line that the server prints. */
  log?: (line: string) => void;
  /** Milliseconds after which a server that does not listen is given up; 60,000 by default. */
  timeout?: number;
}

/** Starts `mockllm serve`, or uses a server that runs already. It ends with this process. */
export function start(options?: StartOptions): Promise<Server>;

export class Server {
  private constructor();
  readonly url: string;
  /** Makes a session: base URLs for one test. */
  session(options?: SessionOptions): Promise<Session>;
  /** Ends the server, if `start` started it. */
  stop(): Promise<void>;
}

export interface SessionOptions {
  /** The name; by default the server chooses one. */
  name?: string;
  /** YAML texts or values. Default: the scenarios of the server. */
  scenarios?: ScenarioSource | readonly ScenarioSource[];
  /** What every stream of the session gets wrong, as `mockllm list quirks` lists it. */
  quirks?: readonly string[];
  /** The scenario that answers whatever a request says. */
  match?: string;
  /** Whether the scenarios of the server answer, too. Default: only without `scenarios`. */
  served?: boolean;
}

/** The base URL for a client of each API. */
export interface BaseUrls {
  readonly chat: string;
  readonly responses: string;
  readonly anthropic: string;
  readonly gemini: string;
  readonly interactions: string;
  readonly realtime: string;
  readonly live: string;
  readonly agui: string;
  readonly ollama: string;
  readonly completions: string;
  readonly cohere: string;
  readonly bedrock: string;
  readonly [api: string]: string;
}

export class Session {
  private constructor();
  readonly name: string;
  /** The address of the session, without the path of an API. */
  readonly url: string;
  readonly baseUrls: BaseUrls;
  /** The variables that the official SDKs read. */
  readonly env: Readonly<Record<string, string>>;
  /** A header that leads a request to this session, in place of the base URL. */
  readonly headers: Readonly<Record<string, string>>;
  /** The URL of an MCP server of the session, a document `mcp: NAME`. */
  mcpUrl(name: string): string;
  /** The program that is this MCP server over standard input and output. */
  mcpCommand(name: string): string[];
  /** Throws a `VerificationError` unless the verdict on the session's requests is good. */
  verify(options?: VerifyOptions): Promise<Verification>;
  /** The verdict on the session's requests, whatever it is. */
  verification(options?: VerifyOptions): Promise<Verification>;
  /** A coding agent whose requests come to the session. */
  agent(name: AgentName): Agent;
  /** Opens a gate: for the answers that wait there, and for those that come later. */
  release(gate: string): Promise<void>;
  /** Resolves when an answer waits at a gate, so that the client has all that comes before. */
  waitForGate(gate: string, options?: WaitOptions): Promise<void>;
  /** Resolves with the journal when no answer is on its way: each was sent, or its client left. */
  waitUntilOver(options?: WaitOptions): Promise<Exchange[]>;
  /** The requests, as docs/control.md describes the journal. */
  journal(): Promise<Exchange[]>;
  /** Deletes the session with all that the server knows of it. */
  delete(): Promise<void>;
}

/** The coding agents that mockllm can start. */
export type AgentName = "claude" | "codex" | "gemini" | "opencode";

/** A coding agent, which gets a HOME and settings of its own for each run. */
export class Agent {
  private constructor();
  /** Runs it to its end. The prompt may be a list of words, with options of the agent's own.
   * Throws a `MockllmError` where it is not installed; the message says what installs it. */
  run(prompt: string | readonly string[], options: AgentOptions): Promise<AgentRun>;
}

export interface AgentOptions {
  /** The folder in which it works: it runs there what the scenario says, without asking. */
  cwd: string;
  /** Milliseconds after which it is ended, with all that it has started; 120,000 by default. */
  timeout?: number;
  /** Further variables. */
  env?: Readonly<Record<string, string>>;
}

/** A run that is over. */
export interface AgentRun {
  readonly output: string;
  readonly errors: string;
  /** As a shell gives it; 124 where it took too long. */
  readonly exitCode: number | string;
  /** The requests that came to the session while it ran. */
  readonly journal: readonly Exchange[];
}

export interface WaitOptions {
  /** Milliseconds after which it rejects; 10,000 by default. */
  timeout?: number;
}

export interface VerifyOptions {
  /** How many requests in a row a client may make without a user message; 50 by default. */
  depth?: number;
  /** Invariants that are not judged. */
  leaveOut?: readonly string[];
  /** Invariants that are judged only if they are named here. */
  require?: readonly string[];
  /** Whether each answer may be requested only once. */
  once?: boolean;
  /** Whether turns that were not played are right. */
  allowUnplayed?: boolean;
  /** Whether a session without a request is right. */
  allowNoRequests?: boolean;
}

/** The options of `verify`, each with its parameter of the server. */
export const VERIFY_OPTIONS: Readonly<Record<keyof VerifyOptions, string>>;

/** One request with its answer, as docs/control.md describes the journal. */
export interface Exchange {
  readonly number: number;
  readonly method: string;
  readonly path: string;
  readonly status: number | null;
  /** Whether its client left before the end of the answer. */
  readonly client_gone: boolean;
  readonly [key: string]: unknown;
}

/** A rule for clients that requests break. */
export interface Violation {
  readonly invariant: string;
  /** The number of the request, if it is one. */
  readonly exchange: number | null;
  readonly message: string;
}

/** A turn that was not played, of a scenario that was begun. */
export interface UnplayedTurn {
  readonly scenario: string;
  /** From 0. */
  readonly turn: number;
}

/** A gate that nobody opened within its limit. */
export interface UnopenedGate {
  /** The number of the request whose answer waited. */
  readonly request: number;
  readonly gate: string;
}

/** A call of the model that an MCP server executed. */
export interface ExecutedCall {
  /** The number of the request that was answered with the call. */
  readonly exchange: number;
  readonly id: string;
  /** `SERVER.TOOL`. */
  readonly tool: string;
  /** The numbers of its tries. */
  readonly operations: readonly number[];
  /** That of the first request with the result. */
  readonly result: number | null;
}

export type Verdict = "good" | "bad" | "unknown";

export interface Verification {
  readonly session: string;
  readonly good: boolean;
  readonly verdict: Verdict;
  readonly violations: readonly Violation[];
  /** What may be a mistake, and is none of the verdict. */
  readonly remarks: readonly Violation[];
  readonly unplayed: readonly UnplayedTurn[];
  readonly unmatched: readonly number[];
  readonly invalid: readonly number[];
  readonly not_judged: readonly number[];
  readonly dropped: number;
  readonly forgotten: number;
  readonly evicted: boolean;
  /** That no request came, where one was expected. */
  readonly no_requests?: boolean;
  /** Requests that mockllm could not answer because of a mistake of its own. */
  readonly failed?: readonly number[];
  /** Why requests may be missing. */
  readonly gaps?: readonly string[];
  /** Gates that nobody opened within their limits. */
  readonly unopened?: readonly UnopenedGate[];
  /** Requests with a fault that did not strike. */
  readonly missed_faults?: readonly number[];
  /** Requests that were refused as the state store was away, and may have been counted. */
  readonly maybe_counted?: readonly number[];
  /** What would be in the lists above if no request were missing; a missing one may be its cause. */
  readonly doubtful?: readonly string[];
  /** The calls of the model that MCP servers executed, where that can be told. */
  readonly calls?: readonly ExecutedCall[];
}

// The helpers of mockllm-harness/vitest and mockllm-harness/jest

/** The options of `start`, and how each test is judged. */
export interface MockllmOptions extends StartOptions {
  /** The options of the `verify` after each test. */
  verify?: VerifyOptions;
}

/** The session of the test that runs. It is judged after the test if the test has used it. */
export interface TestMock {
  readonly url: Session["url"];
  readonly baseUrls: BaseUrls;
  readonly env: Session["env"];
  readonly headers: Session["headers"];
  mcpUrl: Session["mcpUrl"];
  mcpCommand: Session["mcpCommand"];
  /** Makes a session with scenarios of its own that of the test from now on. */
  session(options?: SessionOptions): Promise<Session>;
  agent: Session["agent"];
  /** Judges the session now, in place of the end of the test. */
  verify(options?: VerifyOptions): Promise<Verification>;
  release: Session["release"];
  waitForGate: Session["waitForGate"];
  waitUntilOver: Session["waitUntilOver"];
  journal(): Promise<Exchange[]>;
}

// The check

/** A call as the client has it. */
export interface ToolCall {
  id?: string | null;
  name: string;
  /** Text as accumulated, or a value as parsed. */
  arguments: unknown;
  raw_arguments?: string | null;
}

export interface TokenUsage {
  input?: number | null;
  output?: number | null;
  reasoning?: number | null;
  cached?: number | null;
}

export interface ReportedError {
  message: string;
  raised?: string;
}

/** What a client ends up with. A field that is left out is not judged; null is a value. */
export interface Outcome {
  text?: string | null;
  reasoning?: string | null;
  refusal?: string | null;
  role?: string | null;
  finish?: string | null;
  tool_calls?: readonly ToolCall[];
  usage?: TokenUsage | null;
  /** The errors that the client reports. */
  errors?: ReadonlyArray<string | Error | ReportedError>;
  /** The values that a client sends back unchanged, such as signatures. */
  opaque?: readonly string[] | null;
  model?: string | null;
  response_id?: string | null;
}

export interface OfferedTool {
  name: string;
  description?: string;
  parameters?: unknown;
}

/** A client for one stream. What it throws is an error that it reports. */
export interface ByteAccumulator {
  /** Takes what one read of the socket returned. */
  feed(data: Uint8Array): unknown;
  /** Is called after the last `feed`. */
  close?(): unknown;
  outcome(): Outcome | Promise<Outcome>;
}

export interface PayloadAccumulator {
  /** Takes the JSON value of one event, and the name of the event if it has one. */
  feed(payload: any, event: string | null): unknown;
  close?(): unknown;
  outcome(): Outcome | Promise<Outcome>;
}

export interface StreamCase {
  readonly case: string;
  readonly api: string;
  readonly tools: readonly OfferedTool[];
}

/** What the results say of a client. */
export interface CheckedClient {
  name?: string;
  version?: string;
  entry_point?: string;
  notes?: string;
}

export interface CheckOptions {
  /** The name of an API: `chat`, `responses`, `anthropic`, `gemini`, `agui`, `bedrock`, ... */
  api: string;
  /** Names of cases, with `*`; default: all cases. */
  only?: string | readonly string[];
  /** The client's choices where good designs differ, such as `{ malformed: "skip" }`. */
  policy?: Readonly<Record<string, string | number | boolean>>;
  /** How many variations of each scenario are played, too; 0 by default. */
  variations?: number;
  /** Of the variations. */
  seed?: number | string;
  /** Scenario files and folders with answers to check besides the kit's own. */
  scenarios?: string | readonly string[];
  /** A file with the cases that may fail, each with a reason. */
  knownFailing?: string;
  /** The fields of an outcome that the client has no place for. */
  unsupported?: readonly string[];
  client?: CheckedClient;
  /** The file of the accumulator, such as `import.meta.url`: an exception whose innermost frame is
   * there is a mistake of the adapter, not of the client. */
  adapter?: string;
  /** Where the results file is written; by default it is not kept. */
  results?: string;
  /** Further options of `mockllm check --judge`, such as `["--html", "report"]`. */
  args?: readonly string[];
  /** Milliseconds for one case, where the accumulator is asynchronous; 5,000 by default. */
  limit?: number;
  /** The path of `mockllm`, or the words of a command. Default: it is searched. */
  command?: string | readonly string[];
  cwd?: string;
  env?: Readonly<Record<string, string | undefined>>;
}

export interface ByteCheckOptions extends CheckOptions {
  level?: "bytes";
}

export interface PayloadCheckOptions extends CheckOptions {
  level: "payloads";
}

export type CaseVerdict =
  | "right"
  | "tolerated"
  | "wrong"
  | "silent"
  | "rejected"
  | "crash"
  | "adapter"
  | "not judged";

/** What a mistake costs, the worst first. */
export type Cost = "wrong call" | "data lost" | "wrong metadata" | "loud failure";

export interface CaseResult {
  readonly case: string;
  readonly group: string;
  readonly verdict: CaseVerdict;
  readonly cost: Cost | null;
  /** The rule that the client breaks; "" if none. */
  readonly invariant: string;
  /** The plain case in which the client makes the same mistake, which excuses this one. */
  readonly baseline: string;
  /** The client's own exception or error. */
  readonly exception: string;
  readonly reason: string;
  readonly differences: readonly string[];
  /** docs/check.md describes the other fields. */
  readonly [key: string]: unknown;
}

export interface CheckResults {
  /** Whether every case is right, or listed in `knownFailing`. */
  readonly good: boolean;
  /** 0: right, 1: mistakes, 2: nothing or not everything could be judged. */
  readonly exitCode: number;
  /** What `mockllm check` printed. */
  readonly report: string;
  readonly cases: readonly CaseResult[];
  /** The mistakes of the client, the worst first. */
  readonly failures: readonly CaseResult[];
  /** The results file as a value, see docs/check.md. */
  readonly data: Readonly<Record<string, any>>;
  /** Throws a `ConformanceError` with the worst mistakes unless `good`. */
  assertRight(): void;
}

/** Feeds the streams of `mockllm check` to accumulators of this process. */
export function check(
  factory: (stream: StreamCase) => ByteAccumulator | Promise<ByteAccumulator>,
  options: ByteCheckOptions,
): Promise<CheckResults>;
export function check(
  factory: (stream: StreamCase) => PayloadAccumulator | Promise<PayloadAccumulator>,
  options: PayloadCheckOptions,
): Promise<CheckResults>;

// Errors

/** The server cannot be started or used; the message has what to do next. */
export class MockllmError extends Error {}

/** An AssertionError of node:assert. */
export class VerificationError extends Error {
  readonly code: "ERR_ASSERTION";
  readonly verification: Verification;
}

/** An AssertionError of node:assert. */
export class ConformanceError extends Error {
  readonly code: "ERR_ASSERTION";
  readonly results: CheckResults;
}
