// What adapters need to write a request and to report an outcome. A job is one case, as the
// protocol of runners has it: {api, base_url, model, prompt, tools: [{name, description?,
// parameters?}], deadline (seconds)}.

export const API_KEY = "mock-key";

/** Milliseconds after which the client of a job must have given up. */
export const timeoutOf = (job) => job.deadline * 1000;

/** The tools of a job with all three fields. */
export const functionsOf = (job) =>
  (job.tools ?? []).map(({ name, description, parameters }) => ({
    name,
    description: description || name,
    parameters: parameters ?? { type: "object", properties: {} },
  }));

/** The tools of a job in the form of Chat Completions. */
export const chatToolsOf = (job) =>
  functionsOf(job).map((spec) => ({ type: "function", function: spec }));

/** `{tools}` to spread into a request; nothing where there are none. */
export const withTools = (tools) => (tools.length > 0 ? { tools } : {});

/** A value of a text field as a user would print it; null and undefined are empty text. */
export const asText = (value) => (value === null || value === undefined ? "" : String(value));

/** The texts, joined. */
export const joined = (values) => values.map(asText).join("");
