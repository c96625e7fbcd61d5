package shell

func searchTools() map[string]tool {
	const grepUsage = "[-ivncoEFqrwxlLhH] [-A N] [-B N] [-C N] [-m N] [-e PATTERN] PATTERN [FILE]...\nPrint the lines that match."
	return map[string]tool{
		"grep":  {grep, grepUsage},
		"egrep": {grep, grepUsage},
		"fgrep": {grep, grepUsage},
		"awk":   {awk, "[-F SEP] [-v VAR=VALUE] 'PROGRAM' [FILE]...\nPattern scanning: awk '/x/ {print }'."},
		"sed":   {sed, "[-nEi] [-e SCRIPT] SCRIPT [FILE]...\nEdit a stream: s/a/b/g, d, p, q, a, i, c, y, = with addresses."},
	}
}
