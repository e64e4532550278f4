// The public names of the package. `index.d.ts` describes each of them.

export { Agent } from "./agent.js";
export { check } from "./check.js";
export { ConformanceError, MockllmError, VerificationError } from "./errors.js";
export {
  audio,
  auto,
  error,
  frame,
  gate,
  httpError,
  image,
  interleaved,
  native,
  parallel,
  pause,
  reasoning,
  refusal,
  reply,
  Scenario,
  serverTool,
  text,
  tool,
  turn,
} from "./replies.js";
export { Session, VERIFY_OPTIONS } from "./session.js";
export { Server, start } from "./start.js";
