package pantry

import (
	"context"
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// maxPi bounds the digits that may be asked for.
const maxPi = 20_000

var (
	piCall  = regexp.MustCompile(`^\s*(?:print|say)[\s(]*(?:Math::BigFloat->)?bpi\(\s*(\d+)\s*\)\s*\)?\s*;?\s*$`)
	printed = regexp.MustCompile(`^\s*(?:print|say)\s*\(?\s*(?:"([^"$@\\]*(?:\\n)?)"|'([^']*)')\s*\)?\s*;?\s*$`)
)

// perlProgram understands of Perl what the documentation's Jobs run: -e with a text to
// print, or pi from bignum. It says of everything else that it isn't Perl.
func perlProgram(ctx context.Context, p *Process) int {
	code, newline, given, bignum := "", false, false, false
	args := p.Args[1:]
	for k := 0; k < len(args); k++ {
		switch a := args[k]; {
		case a == "-v" || a == "--version":
			fmt.Fprintf(p.Stdout, "\nThis is no Perl, but a program of Kubistro that knows a few words of it.\n")
			return 0
		case strings.HasPrefix(a, "-M") || strings.HasPrefix(a, "-m"):
			bignum = bignum || strings.Contains(a, "bpi") || strings.Contains(a, "BigFloat")
		case strings.HasPrefix(a, "-") && strings.TrimLeft(a[1:], "wl") == "e", strings.HasPrefix(a, "-") && strings.TrimLeft(a[1:], "wl") == "E":
			newline = newline || strings.Contains(a, "l") || strings.HasSuffix(a, "E")
			if k++; k < len(args) {
				code, given = args[k], true
			}
		case a == "-w", a == "-l", a == "-wl", a == "-lw":
			newline = newline || strings.Contains(a, "l")
		default:
			given = false
			k = len(args)
		}
	}
	unable := func() int {
		fmt.Fprintln(p.Stderr, "perl: on a simulated node there is no Perl interpreter: only `print` of a text and of bignum's bpi(N) are known here")
		return 2
	}
	if !given {
		return unable()
	}
	text := ""
	if m := piCall.FindStringSubmatch(code); m != nil && bignum {
		n, err := strconv.Atoi(m[1])
		if err != nil || n < 1 || n > maxPi {
			fmt.Fprintf(p.Stderr, "perl: at most %d digits here\n", maxPi)
			return 2
		}
		// Perl's arithmetic takes some 3 s for 2000 digits, and grows with the square
		if p.Usage.Work(ctx, max(time.Duration(n*n)*750*time.Nanosecond, 50*time.Millisecond)) != nil {
			return exitSigkill
		}
		text = pi(n)
	} else if m := printed.FindStringSubmatch(code); m != nil {
		text = strings.ReplaceAll(m[1], `\n`, "\n") + m[2]
	} else {
		return unable()
	}
	if newline {
		text += "\n"
	}
	fmt.Fprint(p.Stdout, text)
	return 0
}

// pi is pi with so many significant digits, rounded, by Machin's formula:
// pi/4 = 4 arctan(1/5) - arctan(1/239).
func pi(digits int) string {
	const guard = 10
	one := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(digits-1+guard)), nil)
	arctan := func(x int64) *big.Int {
		sum, square := new(big.Int), big.NewInt(x*x)
		term := new(big.Int).Div(one, big.NewInt(x))
		for n, sign := int64(1), 1; term.Sign() != 0; n, sign = n+2, -sign {
			part := new(big.Int).Div(term, big.NewInt(n))
			if sign < 0 {
				part.Neg(part)
			}
			sum.Add(sum, part)
			term.Div(term, square)
		}
		return sum
	}
	out := arctan(5)
	out.Mul(out, big.NewInt(16)).Sub(out, new(big.Int).Mul(arctan(239), big.NewInt(4)))
	half := new(big.Int).Exp(big.NewInt(10), big.NewInt(guard), nil)
	out.Add(out, new(big.Int).Rsh(half, 1)).Div(out, half)
	s := out.String()
	if digits == 1 {
		return s
	}
	return s[:1] + "." + s[1:]
}
