// The code under test: an agent with one tool, which streams its answer.

const TOOLS = [
  {
    type: "function",
    function: {
      name: "get_weather",
      parameters: {
        type: "object",
        properties: { city: { type: "string" } },
        required: ["city"],
      },
    },
  },
];

/** The model's answer to a question; `onText` gets its text while it arrives. */
export async function ask(client, question, getWeather, onText = () => {}) {
  const messages = [{ role: "user", content: question }];
  for (;;) {
    const stream = client.chat.completions.stream({ model: "gpt-4o", messages, tools: TOOLS });
    stream.on("content", onText);
    const message = await stream.finalMessage();
    messages.push(message);
    if (!message.tool_calls?.length) return message.content;
    for (const call of message.tool_calls) {
      const { city } = JSON.parse(call.function.arguments);
      messages.push({ role: "tool", tool_call_id: call.id, content: getWeather(city) });
    }
  }
}
