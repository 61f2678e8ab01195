"""llama.cpp as a peer of benches/speed.rs: prints its load time, then for each line `COUNT TOKEN...` read the CPU time
of reading the tokens and of decoding COUNT more, in seconds."""

import ctypes
import sys
import time

import llama_cpp as L

path, weights, flash, cache = sys.argv[1:]
quiet = L.llama_log_callback(lambda level, text, data: None)
L.llama_log_set(quiet, ctypes.c_void_p(0))
L.llama_backend_init()
started = time.perf_counter()
parameters = L.llama_model_default_params()
parameters.use_extra_bufts = weights == "repack"
model = L.llama_model_load_from_file(path.encode(), parameters)
parameters = L.llama_context_default_params()
parameters.n_ctx = 2048
parameters.n_batch = 512
parameters.n_threads = parameters.n_threads_batch = 1
parameters.flash_attn_type = int(flash == "on")
parameters.type_k = parameters.type_v = {"f16": L.GGML_TYPE_F16, "q8_0": L.GGML_TYPE_Q8_0}[cache]
context = L.llama_init_from_model(model, parameters)
print(time.perf_counter() - started)
features = L.llama_print_system_info().decode()
wanted = [name for name in ("AVX2", "AVX512_VNNI", "AMX_INT8", "NEON", "DOTPROD") if f" {name} = 1" in features]
print(f"llama-cpp-python {L.__version__} ({' '.join(wanted)})", flush=True)


def read(tokens):
    ids = (L.llama_token * len(tokens))(*tokens)
    assert L.llama_decode(context, L.llama_batch_get_one(ids, len(tokens))) == 0
    L.llama_get_logits_ith(context, -1)


for line in sys.stdin:
    count, *tokens = map(int, line.split())
    L.llama_memory_clear(L.llama_get_memory(context), True)
    started = time.thread_time()
    read(tokens)
    prompt = time.thread_time() - started
    started = time.thread_time()
    for token in range(count):
        read([1000 + token])
    print(prompt, time.thread_time() - started, flush=True)
