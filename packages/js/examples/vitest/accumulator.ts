// The code under test: puts the bytes of a Chat Completions stream together.

export interface Call {
  id: string;
  name: string;
  arguments: string;
}

interface Chunk {
  error?: { message?: string };
  choices?: Array<{
    index?: number;
    finish_reason?: string | null;
    delta?: {
      content?: string | null;
      tool_calls?: Array<{
        index?: number;
        id?: string;
        function?: { name?: string; arguments?: string };
      }>;
    };
  }>;
  usage?: { prompt_tokens: number; completion_tokens: number } | null;
}

export class Accumulator {
  text = "";
  calls: Call[] = [];
  finish: string | null = null;
  usage: { input: number; output: number } | null = null;
  errors: string[] = [];
  #decoder = new TextDecoder();
  #rest = "";

  feed(data: Uint8Array): void {
    const lines = (this.#rest + this.#decoder.decode(data, { stream: true })).split(/\r?\n/);
    this.#rest = lines.pop() ?? "";
    for (const line of lines) {
      const data = /^data: ?(.*)$/.exec(line)?.[1];
      if (data && data !== "[DONE]") this.#chunk(JSON.parse(data) as Chunk);
    }
  }

  #chunk({ error, choices = [], usage }: Chunk): void {
    if (error) this.errors.push(error.message ?? JSON.stringify(error));
    if (usage) this.usage = { input: usage.prompt_tokens, output: usage.completion_tokens };
    const [choice] = choices;
    if (!choice) return;
    this.text += choice.delta?.content ?? "";
    this.finish = choice.finish_reason ?? this.finish;
    for (const { index = 0, id, function: called } of choice.delta?.tool_calls ?? []) {
      const call = (this.calls[index] ??= { id: "", name: "", arguments: "" });
      call.id ||= id ?? "";
      call.name ||= called?.name ?? "";
      call.arguments += called?.arguments ?? "";
    }
  }

  close(): void {
    if (!this.finish && !this.errors.length) this.errors.push("the stream was cut off");
  }
}

/** Requests a streamed answer, and returns it. */
export async function chat(baseUrl: string, prompt: string): Promise<Accumulator> {
  const answer = await fetch(`${baseUrl}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: "Bearer any" },
    body: JSON.stringify({
      model: "gpt-4o",
      stream: true,
      stream_options: { include_usage: true },
      messages: [{ role: "user", content: prompt }],
    }),
  });
  if (!answer.ok || !answer.body) throw new Error(`${answer.status}: ${await answer.text()}`);
  const accumulator = new Accumulator();
  for await (const data of answer.body) accumulator.feed(data);
  accumulator.close();
  return accumulator;
}
