/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario/document_distribution.h"

#include "base/error.h"
#include "base/rng.h"
#include "base/units.h"

#include <math.h>
#include <string.h>

#define STREAM UINT64_C(0x7061636b) /* apart from the streams of jitter and inputs */
#define SIGMA_MAX 10.0
#define TOKENS_MAX (UINT64_C(1) << 40)

static bool
refuse(const char *text, GError **error)
{
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                "found \"%.40s\"; allowed: exponential:MEAN and lognormal:MEDIAN,SIGMA with at "
                "least 1 token and a SIGMA up to %g; empirical",
                text, SIGMA_MAX);
    return false;
}

/* Reads a number of tokens. */
static bool
take_tokens(const char *text, LhDocumentDistribution *d)
{
    uint64_t tokens;

    if (!lh_unit_parse(text, LH_UNIT_COUNT, &tokens, NULL) || tokens == 0 || tokens > TOKENS_MAX)
        return false;
    d->tokens = (double)tokens;
    return true;
}

static bool
take_sigma(const char *text, LhDocumentDistribution *d)
{
    char *end;

    d->sigma = g_ascii_strtod(text, &end);
    return g_ascii_isdigit(*text) && *end == '\0' && d->sigma <= SIGMA_MAX;
}

bool
lh_document_distribution_parse(const char *text, LhDocumentDistribution *d, GError **error)
{
    g_auto(GStrv) words = g_strsplit_set(text, ":,", -1);
    const guint count = g_strv_length(words);

    *d = (LhDocumentDistribution){ .kind = LH_DOCUMENTS_EMPIRICAL };
    if (strcmp(text, "empirical") == 0)
        return true;
    if (count == 2 && g_str_has_prefix(text, "exponential:")) {
        d->kind = LH_DOCUMENTS_EXPONENTIAL;
        return take_tokens(words[1], d) || refuse(text, error);
    }
    d->kind = LH_DOCUMENTS_LOGNORMAL;
    return (count == 3 && g_str_has_prefix(text, "lognormal:") && take_tokens(words[1], d) &&
            take_sigma(words[2], d)) ||
           refuse(text, error);
}

/* ---- draws ---- */

/* Standard normal number, by Box and Muller. */
static double
normal(uint64_t seed, uint64_t pack, uint64_t index)
{
    const double radius = sqrt(-2 * log(1 - lh_rng_uniform(seed, STREAM + 2 * pack, index)));

    return radius * cos(2 * G_PI * lh_rng_uniform(seed, STREAM + 2 * pack + 1, index));
}

static uint64_t
draw_length(const LhDocumentDistribution *d, const LhDocuments *sample, uint64_t seed,
            uint64_t pack, uint64_t index)
{
    const double uniform = lh_rng_uniform(seed, STREAM + 2 * pack, index);
    double tokens;

    if (d->kind == LH_DOCUMENTS_EMPIRICAL) {
        const uint32_t i = (uint32_t)(uniform * sample->count);

        return sample->ends[i] - (i == 0 ? 0 : sample->ends[i - 1]);
    }
    tokens = d->kind == LH_DOCUMENTS_EXPONENTIAL
                 ? -d->tokens * log(1 - uniform)
                 : d->tokens * exp(d->sigma * normal(seed, pack, index));
    return (uint64_t)CLAMP(round(tokens), 1, (double)TOKENS_MAX);
}

/* Appends the ends of a pack. */
static bool
draw_pack(const LhDocumentDistribution *d, const LhDocuments *sample, uint64_t tokens,
          uint64_t seed, uint32_t pack, GArray *ends)
{
    const guint first = ends->len;
    uint64_t end = 0;

    while (end < tokens) {
        end = MIN(end + draw_length(d, sample, seed, pack, ends->len - first), tokens);
        if (ends->len == LH_DOCUMENTS_MAX)
            return false;
        g_array_append_val(ends, end);
    }
    return true;
}

LhDocuments *
lh_documents_draw(const LhDocumentDistribution *d, const LhDocuments *sample, uint64_t tokens,
                  uint32_t count, uint64_t seed, GError **error)
{
    g_autoptr(GArray) ends = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    g_autoptr(GArray) firsts = g_array_new(FALSE, FALSE, sizeof(uint32_t));

    for (uint32_t i = 0; i < count; i++) {
        g_array_append_val(firsts, ends->len);
        if (!draw_pack(d, sample, tokens, seed, i, ends)) {
            g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                        "the packs of a step have more than %u documents", LH_DOCUMENTS_MAX);
            return NULL;
        }
    }
    return lh_documents_new(ends, firsts);
}
