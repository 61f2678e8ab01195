# Installs Dragoman @VERSION@ for one user on Windows: no administrator, nothing outside the prefix except its folder in the
# user's PATH. The archive must have the checksum below.
# Usage: powershell -ExecutionPolicy Bypass -File install.ps1 [-Prefix DIR] [-From DIR-OR-URL] [-Uninstall]
# Default prefix: %LOCALAPPDATA%\Programs\Dragoman
param(
    [string]$Prefix = (Join-Path $env:LOCALAPPDATA 'Programs\Dragoman'),
    [string]$From = '@BASE@',
    [switch]$Uninstall
)
Set-StrictMode -Version 2
$ErrorActionPreference = 'Stop'
# The bar of Windows PowerShell makes a download many times slower.
$ProgressPreference = 'SilentlyContinue'

$version = '@VERSION@'
$checksums = @{
@CHECKSUMS@
}

# Ends the script, and not the window in which its text was pasted.
function Fail([string]$message) {
    throw "install.ps1: $message"
}

# A relative folder is one of this shell, which .NET does not know.
$Prefix = $ExecutionContext.SessionState.Path.GetUnresolvedProviderPathFromPSPath($Prefix)
$list = Join-Path $Prefix 'lib\dragoman\files'
$bin = Join-Path $Prefix 'bin'
$registry = 'HKCU:\Environment'

# The folders of the user's PATH as they are stored: %USERPROFILE% and the like stay.
function Get-UserPath {
    $path = (Get-Item -LiteralPath $registry).GetValue('Path', '', 'DoNotExpandEnvironmentNames')
    @($path -split ';' | Where-Object { $_ })
}

function Set-UserPath([string[]]$folders) {
    Set-ItemProperty -LiteralPath $registry -Name 'Path' -Value ($folders -join ';') -Type ExpandString
    # Other programs hear of it when a variable is changed in this way.
    [Environment]::SetEnvironmentVariable('DRAGOMAN_INSTALLED', '1', 'User')
    [Environment]::SetEnvironmentVariable('DRAGOMAN_INSTALLED', [NullString]::Value, 'User')
}

# Removes the files that the list names, except the given ones.
function Remove-Listed([string[]]$except) {
    foreach ($file in @(Get-Content -LiteralPath $list)) {
        if (-not $file -or $file -match '\.\.' -or $file -match '^[\\/]' -or $file -match ':') { continue }
        if ($except -contains $file) { continue }
        Remove-Item -LiteralPath (Join-Path $Prefix $file) -Force -ErrorAction SilentlyContinue
    }
}

if ($Uninstall) {
    if (-not (Test-Path -LiteralPath $list)) { Fail "Dragoman was not installed in $Prefix by this script." }
    Remove-Listed @()
    if (Test-Path -LiteralPath (Join-Path $bin 'dragoman.exe')) { Fail "$bin\dragoman.exe cannot be removed while it runs." }
    Remove-Item -LiteralPath (Join-Path $bin 'dragoman.exe.old') -Force -ErrorAction SilentlyContinue
    Remove-Item -LiteralPath $list -Force
    $folders = @(Get-UserPath)
    if ($folders -contains $bin) { Set-UserPath @($folders | Where-Object { $_ -ne $bin }) }
    Write-Output "Dragoman is removed from $Prefix. Chats and settings stay; docs/files.md lists their folders."
    return
}

if (-not [Environment]::Is64BitOperatingSystem) { Fail 'there is no archive for 32-bit Windows.' }
$name = "dragoman-$version-windows-x86_64"
$wanted = $checksums["$name.zip"]
if (-not $wanted) { Fail "this release has no archive $name.zip." }
$program = Join-Path $bin 'dragoman.exe'
if ((Test-Path -LiteralPath $program) -and -not (Test-Path -LiteralPath $list)) {
    Fail "$program is there, and this script did not put it there. Remove it first, or choose another -Prefix."
}

$work = Join-Path ([IO.Path]::GetTempPath()) ([IO.Path]::GetRandomFileName())
New-Item -ItemType Directory -Path $work | Out-Null
try {
    $archive = Join-Path $work "$name.zip"
    if ($From -match '^https?://') {
        [Net.ServicePointManager]::SecurityProtocol = [Net.ServicePointManager]::SecurityProtocol -bor 3072
        Invoke-WebRequest -UseBasicParsing -Uri "$From/$name.zip" -OutFile $archive
    } else {
        Copy-Item -LiteralPath (Join-Path ($From -replace '^file:///?(?=[A-Za-z]:)', '') "$name.zip") -Destination $archive
    }
    $found = (Get-FileHash -LiteralPath $archive -Algorithm SHA256).Hash.ToLowerInvariant()
    if ($found -ne $wanted) { Fail 'the archive does not have the checksum of this release. Nothing was installed.' }
    Expand-Archive -LiteralPath $archive -DestinationPath $work
    # The folder of temporary files may have a short name: both paths must have the same form.
    $unpacked = (Get-Item -LiteralPath (Join-Path $work $name)).FullName
    & (Join-Path $unpacked 'bin\dragoman.exe') --version | Out-Null
    if ($LASTEXITCODE -ne 0) { Fail 'the program does not run on this machine. Nothing was installed.' }

    $files = @(Get-ChildItem -LiteralPath $unpacked -Recurse -File | ForEach-Object { $_.FullName.Substring($unpacked.Length + 1) })
    # The list names everything from the first file on: an installation that is stopped can be repeated and removed.
    New-Item -ItemType Directory -Force -Path (Split-Path -Parent $list) | Out-Null
    $before = @()
    if (Test-Path -LiteralPath $list) { $before = @(Get-Content -LiteralPath $list) }
    Set-Content -LiteralPath $list -Value ($before + $files) -Encoding UTF8
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
    Remove-Item -LiteralPath "$program.old" -Force -ErrorAction SilentlyContinue
    Remove-Listed $files
    Set-Content -LiteralPath $list -Value $files -Encoding UTF8
    Set-Content -LiteralPath (Join-Path $Prefix 'lib\dragoman\package') -Value 'script' -Encoding ASCII
} finally {
    Remove-Item -LiteralPath $work -Recurse -Force -ErrorAction SilentlyContinue
}

Write-Output "Dragoman $version is installed: $program"
$folders = @(Get-UserPath)
if ($folders -notcontains $bin) {
    Set-UserPath ($folders + $bin)
    Write-Output "$bin was added to your PATH; open a new terminal."
}
Write-Output 'Next: dragoman setup, or dragoman chat'
