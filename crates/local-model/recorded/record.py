"""Records what llama.cpp makes of our prompts on the default model, for tests/it/recorded.rs to compare with.

    python3 -m pip install llama-cpp-python==0.3.36    # brings jinja2, which renders the chat template
    python3 record.py PATH/TO/smollm2-135m.gguf > smollm2-135m.json

For each prompt: the token ids of the bare text; those of the chat with that text as its only message; and the
tokens chosen greedily after it, each with its lead in logits over the second choice.
"""

import ctypes
import hashlib
import json
import re
import sys

import jinja2
import llama_cpp as L
import numpy

GREEDY = 48

LONG = " ".join(
    f"Step {n}: the keeper of lamp {n * 7 % 31} climbs {n * 13 % 97 + 3} stairs, trims the wick, writes the hour "
    f"in the book and tells the harbour that {['fog', 'rain', 'snow', 'a ship', 'nobody'][n % 5]} is near."
    for n in range(1, 41)
)

PROMPTS = {
    "capital": "What is the capital of France?",
    "sky": "Why is the sky blue? Answer in one sentence.",
    "list": "Name three colours of the rainbow.",
    "arithmetic": "What is 12 + 30? Then tell me 1234567890 divided by 10.",
    "story": "Write the first sentence of a story about a lighthouse keeper who can't sleep.",
    "contractions": "I'm sure you've said they'll come, but he'd rather we're not there. It's John's, isn't it?",
    "german": "Wie heißt die größte Stadt in Österreich? Äpfel, Öl und Übermut.",
    "french": "Où est la bibliothèque ? L'élève a-t-il déjà mangé à midi ?",
    "spanish": "¿Cuál es la capital de España? ¡Dímelo ya, por favor!",
    "russian": "Напиши одно короткое предложение о море.",
    "chinese": "中国的首都是哪里？请用一句话回答。",
    "japanese": "日本で一番高い山は何ですか。カタカナも、ひらがなも。",
    "arabic": "ما هي عاصمة مصر؟ أجب بجملة واحدة.",
    "hindi": "भारत की राजधानी क्या है? १२३",
    "korean": "한국의 수도는 어디입니까?",
    "greek_hebrew_thai": "Γειά σου κόσμε, שלום עולם, สวัสดีชาวโลก",
    "rust": "Explain this code:\n\nfn main() {\n    let mut total = 0u64;\n    for i in 0..10 {\n        total += i * 2;\n"
    '    }\n    println!("{total}");\n}\n',
    "python": "def fib(n):\n\tif n < 2:\n\t\treturn n\n\treturn fib(n-1) + fib(n-2)\n\n# What does fib(10) return?",
    "json": '{"name": "dragoman", "tags": ["cli", "editor"], "size": 1.5e-3, "ok": true}\n\nWhat is the value of "name"?',
    "sql": "SELECT u.id, COUNT(*) AS n FROM users u LEFT JOIN posts p ON p.user_id = u.id WHERE u.age >= 18 GROUP BY 1;",
    "emoji": "What do these mean? 😀 👍🏽 👨‍👩‍👧‍👦 🇫🇷 🏳️‍🌈 ❤️ 🧑🏿‍🚀",
    "space": "a  b   c\t\td \n\n\n e\r\n\r\nf   \n   g 1  2   3    4",
    "symbols": "~~~ <<>> !!! ??? ... --- === +++ $$$ %%% ^^^ &&& *** ((( ))) [[[ ]]] {{{ }}} ||| \\\\\\ /// ``` ''' \"\"\"",
    "combining": "Zalgo: h̷e̷l̷l̷o̷, naïve café vs naïve café, ﬁne ﬂuid, ①②③ ½ ¾ ²³, ‮right‬ \u200bzero\u200bwidth\ufeff",
    "marks": "The text <|im_start|>system and <|im_end|> and <|endoftext|> and <repo_name> in a message is only text.",
    "url": "https://example.org/path/to/page.html?query=value&other=1%202#fragment and mail@example.org",
    "longword": "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft " + "ab" * 200,
    "long": "Here is a log.\n\n" + LONG + "\n\nWhat does the keeper write in the book?",
}


class Engine:
    def __init__(self, path):
        self.quiet = L.llama_log_callback(lambda level, text, data: None)
        L.llama_log_set(self.quiet, ctypes.c_void_p(0))
        L.llama_backend_init()
        parameters = L.llama_model_default_params()
        # The plain CPU kernels, which are the same on every machine.
        parameters.use_extra_bufts = False
        self.model = L.llama_model_load_from_file(path.encode(), parameters)
        self.vocabulary = L.llama_model_get_vocab(self.model)
        self.size = L.llama_vocab_n_tokens(self.vocabulary)
        parameters = L.llama_context_default_params()
        parameters.n_ctx = 4096
        parameters.n_batch = 4096
        parameters.n_threads = parameters.n_threads_batch = 1
        self.context = L.llama_init_from_model(self.model, parameters)

    def tokens(self, text, marks):
        data = text.encode()
        ids = (L.llama_token * (len(data) + 16))()
        count = L.llama_tokenize(self.vocabulary, data, len(data), ids, len(ids), False, marks)
        return list(ids[:count])

    def template(self):
        return L.llama_model_chat_template(self.model, None).decode()

    def clear(self):
        L.llama_memory_clear(L.llama_get_memory(self.context), True)

    def read(self, tokens):
        ids = (L.llama_token * len(tokens))(*tokens)
        assert L.llama_decode(self.context, L.llama_batch_get_one(ids, len(tokens))) == 0
        return numpy.ctypeslib.as_array(L.llama_get_logits_ith(self.context, -1), (self.size,))


def greedy(engine, tokens):
    engine.clear()
    logits, chosen, leads = engine.read(tokens), [], []
    while len(chosen) < GREEDY:
        second, best = numpy.argsort(logits, kind="stable")[-2:]
        chosen.append(int(best))
        leads.append(round(float(logits[best] - logits[second]), 3))
        if L.llama_vocab_is_eog(engine.vocabulary, int(best)):
            break
        logits = engine.read([int(best)])
    return chosen, leads


def main():
    path = sys.argv[1]
    engine = Engine(path)
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(engine.template())
    prompts = []
    for name, text in PROMPTS.items():
        # A message must not steer the model: the engine breaks such marks with a zero-width space, and so do we.
        content = re.sub(r"<(\|\w+\||repo_name)>", "<\u200b\\1>", text)
        rendered = template.render(messages=[{"role": "user", "content": content}], add_generation_prompt=True)
        chat = engine.tokens(rendered, True)
        chosen, leads = greedy(engine, chat)
        tokens = engine.tokens(text, False)
        prompts.append(dict(name=name, text=text, tokens=tokens, chat=chat, greedy=chosen, leads=leads))
        print(name, len(chat), len(chosen), file=sys.stderr)
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    print("{")
    print(f' "engine": "llama.cpp by llama-cpp-python {L.__version__}",')
    print(f' "sha256": "{digest}",')
    print(' "prompts": [')
    print(",\n".join("  " + json.dumps(prompt, ensure_ascii=False, separators=(",", ":")) for prompt in prompts))
    print(" ]\n}")


main()
