# Installs Dragoman @VERSION@ for one user on Windows: no administrator, nothing outside the prefix. The archive must have the
# checksum below.
# Usage: install.ps1 [-Prefix DIR] [-From DIR-OR-URL] [-Uninstall]      default prefix: %LOCALAPPDATA%\Programs\Dragoman
param(
    [string]$Prefix = (Join-Path $env:LOCALAPPDATA 'Programs\Dragoman'),
    [string]$From = '@BASE@',
    [switch]$Uninstall
)
Set-StrictMode -Version 2
$ErrorActionPreference = 'Stop'

$version = '@VERSION@'
$checksums = @{
@CHECKSUMS@
}

function Fail([string]$message) {
    [Console]::Error.WriteLine("install.ps1: $message")
    exit 1
}

$list = Join-Path $Prefix 'lib\dragoman\files'
$bin = Join-Path $Prefix 'bin'

# The folders of the user's PATH, as they are stored.
function Get-UserPath {
    $path = [Environment]::GetEnvironmentVariable('Path', 'User')
    if ($path) { @($path -split ';' | Where-Object { $_ }) } else { @() }
}

if ($Uninstall) {
    if (-not (Test-Path -LiteralPath $list)) { Fail "Dragoman was not installed in $Prefix by this script." }
    foreach ($file in Get-Content -LiteralPath $list) {
        if ($file -match '\.\.' -or $file -match '^[\\/]' -or $file -match ':') { continue }
        Remove-Item -LiteralPath (Join-Path $Prefix $file) -Force -ErrorAction SilentlyContinue
    }
    Remove-Item -LiteralPath $list -Force
    $rest = @(Get-UserPath | Where-Object { $_ -ne $bin })
    [Environment]::SetEnvironmentVariable('Path', ($rest -join ';'), 'User')
    Write-Output "Dragoman is removed from $Prefix. Chats and settings stay; docs/files.md lists their folders."
    exit 0
}

if (-not [Environment]::Is64BitOperatingSystem) { Fail 'there is no archive for 32-bit Windows.' }
$name = "dragoman-$version-windows-x86_64"
$wanted = $checksums["$name.zip"]
if (-not $wanted) { Fail "this release has no archive $name.zip." }

$work = Join-Path ([IO.Path]::GetTempPath()) ([IO.Path]::GetRandomFileName())
New-Item -ItemType Directory -Path $work | Out-Null
try {
    $archive = Join-Path $work "$name.zip"
    if ($From -match '^https?://') {
        [Net.ServicePointManager]::SecurityProtocol = [Net.ServicePointManager]::SecurityProtocol -bor 3072
        Invoke-WebRequest -UseBasicParsing -Uri "$From/$name.zip" -OutFile $archive
    } else {
        Copy-Item -LiteralPath (Join-Path ($From -replace '^file://', '') "$name.zip") -Destination $archive
    }
    $found = (Get-FileHash -LiteralPath $archive -Algorithm SHA256).Hash.ToLowerInvariant()
    if ($found -ne $wanted) { Fail 'the archive does not have the checksum of this release. Nothing was installed.' }
    Expand-Archive -LiteralPath $archive -DestinationPath $work
    $unpacked = Join-Path $work $name
    & (Join-Path $unpacked 'bin\dragoman.exe') --version | Out-Null
    if ($LASTEXITCODE -ne 0) { Fail 'the program does not run on this machine. Nothing was installed.' }

    $files = @(Get-ChildItem -LiteralPath $unpacked -Recurse -File | ForEach-Object { $_.FullName.Substring($unpacked.Length + 1) })
    foreach ($file in $files) {
        $target = Join-Path $Prefix $file
        New-Item -ItemType Directory -Force -Path (Split-Path -Parent $target) | Out-Null
        # A program that runs cannot be replaced, but it can be renamed.
        if ($file -eq 'bin\dragoman.exe' -and (Test-Path -LiteralPath $target)) {
            Remove-Item -LiteralPath "$target.old" -Force -ErrorAction SilentlyContinue
            Move-Item -LiteralPath $target -Destination "$target.old" -Force
        }
        Copy-Item -LiteralPath (Join-Path $unpacked $file) -Destination $target -Force
    }
    Remove-Item -LiteralPath (Join-Path $bin 'dragoman.exe.old') -Force -ErrorAction SilentlyContinue
    if (Test-Path -LiteralPath $list) {
        foreach ($file in Get-Content -LiteralPath $list) {
            if ($file -match '\.\.' -or $file -match '^[\\/]' -or $file -match ':') { continue }
            if ($files -notcontains $file) { Remove-Item -LiteralPath (Join-Path $Prefix $file) -Force -ErrorAction SilentlyContinue }
        }
    }
    Set-Content -LiteralPath $list -Value $files -Encoding UTF8
    Set-Content -LiteralPath (Join-Path $Prefix 'lib\dragoman\package') -Value 'script' -Encoding ASCII
} finally {
    Remove-Item -LiteralPath $work -Recurse -Force -ErrorAction SilentlyContinue
}

Write-Output "Dragoman $version is installed: $bin\dragoman.exe"
if ((Get-UserPath) -notcontains $bin) {
    [Environment]::SetEnvironmentVariable('Path', ((@(Get-UserPath) + $bin) -join ';'), 'User')
    Write-Output "$bin was added to your PATH; open a new terminal."
}
Write-Output 'Next: dragoman setup, or dragoman chat'
