/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the lengths of packed documents, and draws them.
 */
#include "scenario/documents.h"

#include "base/error.h"
#include "base/files/file_input.h"
#include "base/rng.h"
#include "base/text_reader.h"
#include "base/units.h"

#include <math.h>
#include <string.h>

#define BYTES_MAX (16777216)
#define TOKENS_MAX (UINT64_C(1) << 40)
#define SEPARATOR ';' /* of packs */
#define SHOWN_MAX 40  /* bytes of a word that a message quotes */

/* Moves to the next word; false at the end. */
static bool
skip_space(LhTextReader *r)
{
    bool comment = false;

    for (; r->at < r->end; r->at++) {
        if (*r->at == '\n') {
            r->line++;
            r->line_start = r->at + 1;
            comment = false;
        } else if (*r->at == '#') {
            comment = true;
        } else if (!comment && !g_ascii_isspace(*r->at)) {
            return true;
        }
    }
    return false;
}

static bool
read_length(LhTextReader *r, uint64_t *length)
{
    const char *start = r->at;
    g_autofree char *word = NULL;
    g_autofree char *valid = NULL;

    while (r->at < r->end && !g_ascii_isspace(*r->at) && *r->at != '#' && *r->at != SEPARATOR)
        r->at++;
    word = g_strndup(start, (gsize)(r->at - start));
    if (memchr(start, '\0', (gsize)(r->at - start)) == NULL &&
        lh_unit_parse(word, LH_UNIT_COUNT, length, NULL) && *length > 0)
        return true;
    word[MIN(strlen(word), SHOWN_MAX)] = '\0';
    valid = g_utf8_make_valid(word, -1);
    return lh_text_fail(r, start, "\"%s\" is not a document length; allowed: %s, at least 1", valid,
                        lh_unit_expected(LH_UNIT_COUNT));
}

/* Ends a pack of @tokens tokens, which @end follows. */
static bool
end_pack(LhTextReader *r, const char *end, const GArray *ends, const GArray *firsts,
         uint64_t tokens)
{
    const guint packs = firsts->len;

    if (g_array_index(firsts, uint32_t, packs - 1) == ends->len)
        return lh_text_fail(r, end, "pack %u has no document", packs);
    if (packs > 1 &&
        g_array_index(ends, uint64_t, g_array_index(firsts, uint32_t, 1) - 1) != tokens)
        return lh_text_fail(
            r, end, "pack %u has %" G_GUINT64_FORMAT " tokens, the first one %" G_GUINT64_FORMAT,
            packs, tokens, g_array_index(ends, uint64_t, g_array_index(firsts, uint32_t, 1) - 1));
    return true;
}

static bool
read_all(LhTextReader *r, GArray *ends, GArray *firsts)
{
    uint64_t tokens = 0;

    g_array_append_val(firsts, ends->len);
    while (skip_space(r)) {
        const char *start = r->at;
        uint64_t length = 0;

        if (*start == SEPARATOR) {
            if (!end_pack(r, start, ends, firsts, tokens))
                return false;
            g_array_append_val(firsts, ends->len);
            tokens = 0;
            r->at++;
            continue;
        }
        if (!read_length(r, &length))
            return false;
        if (length > TOKENS_MAX - tokens)
            return lh_text_fail(
                r, start, "the documents have more than %" G_GUINT64_FORMAT " tokens", TOKENS_MAX);
        if (ends->len == LH_DOCUMENTS_MAX)
            return lh_text_fail(r, start, "more than %u documents", LH_DOCUMENTS_MAX);
        tokens += length;
        g_array_append_val(ends, tokens);
    }
    if (ends->len == 0)
        return lh_text_fail(r, r->line_start, "the file contains no document");
    return end_pack(r, r->line_start, ends, firsts, tokens);
}

LhDocuments *
lh_documents_new(GArray *ends, GArray *firsts)
{
    LhDocuments *documents = g_new0(LhDocuments, 1);
    const guint all = ends->len;

    documents->packs_count = firsts->len;
    documents->packs = g_new(LhDocumentPack, firsts->len);
    documents->ends = (uint64_t *)(void *)g_array_steal(ends, NULL);
    for (guint i = 0; i < firsts->len; i++) {
        const uint32_t first = g_array_index(firsts, uint32_t, i);
        const uint32_t end =
            i + 1 < firsts->len ? g_array_index(firsts, uint32_t, i + 1) : (uint32_t)all;

        documents->packs[i] = (LhDocumentPack){ documents->ends + first, end - first };
    }
    documents->count = documents->packs[0].count;
    return documents;
}

LhDocuments *
lh_documents_parse(const char *file, const char *text, gsize length, GError **error)
{
    g_autoptr(GArray) ends = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    g_autoptr(GArray) firsts = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    LhTextReader reader = { file, text, text + length, text, 1, error };
    LhDocuments *documents;

    if (!read_all(&reader, ends, firsts))
        return NULL;
    documents = lh_documents_new(ends, firsts);
    documents->sha256 =
        g_compute_checksum_for_data(G_CHECKSUM_SHA256, (const guchar *)text, length);
    return documents;
}

LhDocuments *
lh_documents_load(const char *path, GError **error)
{
    gsize length;
    g_autofree char *text = lh_input_read(path, BYTES_MAX, &length, error);

    return text != NULL ? lh_documents_parse(path, text, length, error) : NULL;
}

void
lh_documents_free(LhDocuments *documents)
{
    if (documents == NULL)
        return;
    g_free(documents->ends);
    g_free(documents->packs);
    g_free(documents->sha256);
    g_free(documents);
}

/* ---- drawn packs ---- */

#define STREAM UINT64_C(0x7061636b) /* apart from the streams of jitter and inputs */
#define SIGMA_MAX 10.0

static bool
refuse_distribution(const char *text, GError **error)
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
        return take_tokens(words[1], d) || refuse_distribution(text, error);
    }
    d->kind = LH_DOCUMENTS_LOGNORMAL;
    return (count == 3 && g_str_has_prefix(text, "lognormal:") && take_tokens(words[1], d) &&
            take_sigma(words[2], d)) ||
           refuse_distribution(text, error);
}

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
