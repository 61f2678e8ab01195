class Dragoman < Formula
  desc "Coding assistant for every editor, in one native program"
  homepage "@HOMEPAGE@"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

@BLOCKS@
  def install
    bin.install "bin/dragoman"
    man1.install Dir["share/man/man1/*.1"]
    bash_completion.install "share/bash-completion/completions/dragoman"
    zsh_completion.install "share/zsh/site-functions/_dragoman"
    fish_completion.install "share/fish/vendor_completions.d/dragoman.fish"
    doc.install Dir["share/doc/dragoman/*"]
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/dragoman --version")
  end
end
