/* svg.c - see svg.h */
#include "sim/svg.h"

#include <string.h>

#include "sim/time_text.h"
#include "util/utf8.h"

static void put(FILE *out, const char *s, size_t n)
{
    for (const char *end = s + n; s < end; s++) {
        if (*s == '&')
            fputs("&amp;", out);
        else if (*s == '<')
            fputs("&lt;", out);
        else if (*s == '>')
            fputs("&gt;", out);
        else if ((unsigned char)*s < ' ' || *s == 0x7f)
            fputc(' ', out);
        else
            fputc(*s, out);
    }
}

void svg_text(FILE *out, const char *s)
{
    put(out, s, strlen(s));
}

void svg_short_text(FILE *out, const char *s, size_t letters)
{
    bool whole = utf8_letters(s) <= letters;

    put(out, s, utf8_first(s, whole ? letters : letters - 1));
    if (!whole)
        fputs("&#8230;", out);
}

uint32_t svg_round_step(uint32_t most)
{
    static const uint32_t digits[] = {1, 2, 5};

    for (uint32_t power = 1;; power *= 10)
        for (int i = 0; i < 3; i++)
            if (most / (digits[i] * power) <= 5)
                return digits[i] * power;
}

void svg_time_axis(FILE *out, const struct svg_time_axis *a)
{
    int64_t step = time_tick_step(a->extent_ms, 12);
    const char *unit = time_tick_unit(step, a->extent_ms);
    char label[TIME_TEXT_MAX];

    for (int64_t at = 0; at <= a->extent_ms; at += step) {
        int x = a->left + (int)((double)at / (double)a->extent_ms * (a->right - a->left));

        fprintf(out,
                "<path d=\"M%d.5 %dV%dM%d.5 %dv6\" stroke=\"#000\" stroke-opacity=\".18\"/>"
                "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
                x, a->top, a->bottom, x, a->base, x, a->base + 20,
                time_tick(label, at, step, a->extent_ms));
    }
    fprintf(out,
            "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\" fill=\"#666\">time in the "
            "trace%s%s</text>\n",
            (a->left + a->right) / 2, a->base + 39, *unit ? ", " : "", unit);
}
