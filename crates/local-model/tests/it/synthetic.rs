//! Small model files made here: every format, a whole vocabulary, random weights. No download is needed for them.

use std::collections::BTreeMap;

/// A GGUF file in the making.
pub(crate) struct File {
    values: Vec<u8>,
    count: u64,
    tensors: Vec<(String, Vec<u64>, u32, Vec<u8>)>,
}

/// The sizes of a toy model, and the format of its matrices.
#[derive(Clone, Copy)]
pub(crate) struct Toy {
    pub embedding: usize,
    pub feed_forward: usize,
    pub layers: usize,
    pub heads: usize,
    pub key_heads: usize,
    pub format: u32,
    pub architecture: &'static str,
    /// The format of some matrices, where it is another one: Q4_K_M files have values and outputs in Q6_K.
    pub other_format: Option<u32>,
    pub template: Option<&'static str>,
    /// Tokens the model was trained to look back on.
    pub context: u32,
    /// The vocabulary has the marks of fill-in-the-middle.
    pub fills_middle: bool,
    /// The exponent of the scales of quantized blocks, as a half has it: 6 is 2^-9.
    pub exponent: u16,
}

pub(crate) const F32: u32 = 0;

impl Default for Toy {
    fn default() -> Toy {
        Toy {
            embedding: 64,
            feed_forward: 128,
            layers: 2,
            heads: 4,
            key_heads: 2,
            format: F32,
            architecture: "llama",
            other_format: None,
            template: None,
            context: 512,
            fills_middle: false,
            exponent: 6,
        }
    }
}

impl File {
    pub(crate) fn new() -> File {
        File { values: Vec::new(), count: 0, tensors: Vec::new() }
    }

    fn key(&mut self, key: &str, kind: u32) {
        self.count += 1;
        string(&mut self.values, key);
        self.values.extend(kind.to_le_bytes());
    }

    pub(crate) fn number(&mut self, key: &str, value: u32) {
        self.key(key, 4);
        self.values.extend(value.to_le_bytes());
    }

    pub(crate) fn real(&mut self, key: &str, value: f32) {
        self.key(key, 6);
        self.values.extend(value.to_le_bytes());
    }

    pub(crate) fn text(&mut self, key: &str, value: &str) {
        self.key(key, 8);
        string(&mut self.values, value);
    }

    pub(crate) fn texts(&mut self, key: &str, values: &[String]) {
        self.key(key, 9);
        self.values.extend(8u32.to_le_bytes());
        self.values.extend((values.len() as u64).to_le_bytes());
        values.iter().for_each(|value| string(&mut self.values, value));
    }

    pub(crate) fn integers(&mut self, key: &str, values: &[i32]) {
        self.key(key, 9);
        self.values.extend(5u32.to_le_bytes());
        self.values.extend((values.len() as u64).to_le_bytes());
        values.iter().for_each(|value| self.values.extend(value.to_le_bytes()));
    }

    pub(crate) fn tensor(&mut self, name: &str, shape: &[usize], format: u32, data: Vec<u8>) {
        let shape = shape.iter().map(|&size| size as u64).collect();
        self.tensors.push((name.to_owned(), shape, format, data));
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = b"GGUF".to_vec();
        bytes.extend(3u32.to_le_bytes());
        bytes.extend((self.tensors.len() as u64).to_le_bytes());
        bytes.extend(self.count.to_le_bytes());
        bytes.extend(&self.values);
        let mut offset = 0u64;
        for (name, shape, format, data) in &self.tensors {
            string(&mut bytes, name);
            bytes.extend((shape.len() as u32).to_le_bytes());
            shape.iter().for_each(|size| bytes.extend(size.to_le_bytes()));
            bytes.extend(format.to_le_bytes());
            bytes.extend(offset.to_le_bytes());
            offset += (data.len() as u64).next_multiple_of(32);
        }
        for (_, _, _, data) in &self.tensors {
            bytes.resize(bytes.len().next_multiple_of(32), 0);
            bytes.extend(data);
        }
        bytes
    }
}

fn string(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend(text.as_bytes());
}

/// Numbers that look random and are the same every time.
pub(crate) struct Numbers(pub u64);

impl Numbers {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    pub(crate) fn float(&mut self) -> f32 {
        self.next() as f32 / (1u64 << 30) as f32 - 1.0
    }
}

/// `count` weights in a format, small enough for a model to stay finite.
pub(crate) fn weights(numbers: &mut Numbers, format: u32, count: usize, exponent: u16) -> Vec<u8> {
    // Bytes of a block, weights in it, and where its half-precision scales lie.
    let (bytes, weights, scales): (usize, usize, &[usize]) = match format {
        0 => return (0..count).flat_map(|_| (numbers.float() * 0.2).to_le_bytes()).collect(),
        30 => return (0..count).flat_map(|_| (numbers.float() * 0.2).to_le_bytes()[2..].to_vec()).collect(),
        1 => (2, 1, &[0]),
        2 => (18, 32, &[0]),
        3 => (20, 32, &[0, 2]),
        6 => (22, 32, &[0]),
        7 => (24, 32, &[0, 2]),
        8 => (34, 32, &[0]),
        12 => (144, 256, &[0, 2]),
        13 => (176, 256, &[0, 2]),
        14 => (210, 256, &[208]),
        other => panic!("no such format: {other}"),
    };
    let mut all = Vec::new();
    for _ in 0..count / weights {
        let mut block: Vec<u8> = (0..bytes).map(|_| numbers.next() as u8).collect();
        for &place in scales {
            // A half of either sign between a power of two and the next.
            let half = (numbers.next() as u16 & 0x83ff) | exponent << 10;
            block[place..place + 2].copy_from_slice(&half.to_le_bytes());
        }
        all.extend(block);
    }
    all
}

/// The letters byte-level vocabularies write bytes in.
fn letters() -> Vec<String> {
    let plain = |byte: &u32| matches!(byte, 33..=126 | 161..=172 | 174..=255);
    let others: BTreeMap<u32, u32> = (0..256).filter(|byte| !plain(byte)).zip(256..).collect();
    (0..256).map(|byte| char::from_u32(*others.get(&byte).unwrap_or(&byte)).unwrap().to_string()).collect()
}

impl Toy {
    /// A whole model file with a vocabulary of all bytes and a few marks.
    pub(crate) fn file(self) -> File {
        let mut file = File::new();
        let key = |key: &str| format!("{}.{key}", self.architecture);
        file.text("general.architecture", self.architecture);
        file.text("general.name", "toy");
        file.number(&key("block_count"), self.layers as u32);
        file.number(&key("context_length"), self.context);
        file.number(&key("embedding_length"), self.embedding as u32);
        file.number(&key("feed_forward_length"), self.feed_forward as u32);
        file.number(&key("attention.head_count"), self.heads as u32);
        file.number(&key("attention.head_count_kv"), self.key_heads as u32);
        file.real(&key("attention.layer_norm_rms_epsilon"), 1e-5);
        file.real(&key("rope.freq_base"), 10_000.0);
        let mut tokens = letters();
        let marks = ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "Ġt", "he", "Ġthe"];
        tokens.extend(marks.map(str::to_owned));
        let mut kinds = vec![1; tokens.len()];
        kinds[256..259].fill(3);
        if self.fills_middle {
            tokens.extend(["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"].map(str::to_owned));
            kinds.extend([3; 3]);
        }
        file.text("tokenizer.ggml.model", "gpt2");
        file.text("tokenizer.ggml.pre", if self.architecture == "llama" { "smollm" } else { "qwen2" });
        file.texts("tokenizer.ggml.tokens", &tokens);
        file.integers("tokenizer.ggml.token_type", &kinds);
        file.texts("tokenizer.ggml.merges", &["Ġ t", "h e", "Ġt he"].map(str::to_owned));
        file.number("tokenizer.ggml.eos_token_id", 257);
        if let Some(template) = self.template {
            file.text("tokenizer.chat_template", template);
        }
        self.tensors(&mut file, tokens.len());
        file
    }

    fn tensors(self, file: &mut File, vocabulary: usize) {
        let mut numbers = Numbers(5);
        let (embedding, head) = (self.embedding, self.embedding / self.heads);
        let keys = head * self.key_heads;
        let mut matrix = |file: &mut File, name: &str, columns: usize, rows: usize| {
            let other = ["attn_v", "ffn_down", "token_embd"].iter().any(|part| name.contains(part));
            let format = self.other_format.filter(|_| other).unwrap_or(self.format);
            let data = weights(&mut numbers, format, columns * rows, self.exponent);
            file.tensor(name, &[columns, rows], format, data);
        };
        // Numbers of their own, so that a bias does not change the weights of another architecture.
        let mut small = Numbers(7);
        let mut vector = |file: &mut File, name: &str, length: usize, middle: f32| {
            let data = (0..length).flat_map(|_| (middle + small.float() * 0.2).to_le_bytes()).collect();
            file.tensor(name, &[length], F32, data);
        };
        let norm = |file: &mut File, name: &str| {
            file.tensor(name, &[embedding], F32, vec![1f32.to_le_bytes(); embedding].concat());
        };
        matrix(file, "token_embd.weight", embedding, vocabulary);
        norm(file, "output_norm.weight");
        for layer in 0..self.layers {
            let name = |part: &str| format!("blk.{layer}.{part}.weight");
            norm(file, &name("attn_norm"));
            norm(file, &name("ffn_norm"));
            matrix(file, &name("attn_q"), embedding, embedding);
            matrix(file, &name("attn_k"), embedding, keys);
            matrix(file, &name("attn_v"), embedding, keys);
            matrix(file, &name("attn_output"), embedding, embedding);
            if self.architecture == "qwen2" {
                vector(file, &format!("blk.{layer}.attn_q.bias"), embedding, 0.0);
                vector(file, &format!("blk.{layer}.attn_k.bias"), keys, 0.0);
                vector(file, &format!("blk.{layer}.attn_v.bias"), keys, 0.0);
            }
            if self.architecture == "qwen3" {
                vector(file, &name("attn_q_norm"), head, 1.0);
                vector(file, &name("attn_k_norm"), head, 1.0);
            }
            matrix(file, &name("ffn_gate"), embedding, self.feed_forward);
            matrix(file, &name("ffn_up"), embedding, self.feed_forward);
            matrix(file, &name("ffn_down"), self.feed_forward, embedding);
        }
    }
}
