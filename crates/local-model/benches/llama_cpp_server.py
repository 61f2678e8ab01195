"""llama.cpp as a server beside benches/coder.rs: `llama_cpp_server.py MODEL THREADS` prints its address and serves until its
input ends. Needs the package xllamacpp."""

import sys

import xllamacpp

model, threads = sys.argv[1], int(sys.argv[2])
parameters = xllamacpp.CommonParams()
parameters.model.path = model
parameters.n_ctx = 8192
parameters.n_parallel = 1
parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
parameters.port = 0
parameters.verbosity = 0
server = xllamacpp.Server(parameters)
print(server.listening_address, xllamacpp.get_system_info(), flush=True)
sys.stdin.read()
