/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes the text of an instruction. Arithmetic is looked up in the table of forms of ptx_lanes.c;
 * instructions on memory, other lanes or control flow have functions here. An unused modifier is an
 * error.
 */
#include "ptx_float.h"
#include "ptx_parser.h"

#include <stdlib.h>

typedef struct {
    ptx_parser *parser;
    ptx_word opcode;
    ptx_word words[PTX_WORDS_MAX]; /* modifiers */
    uint32_t words_count, words_taken;
    ptx_operand operands[PTX_OPERANDS_MAX];
    uint32_t operands_count;
    uint32_t guard;
    bool guard_negated;
} Statement;

const ptx_form *
ptx_forms_best(void)
{
#if defined(PTX_HAVE_AVX2)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return ptx_forms_avx2;
#endif
    return ptx_forms_plain;
}

/* ---- operands ---- */

static const struct {
    const char *name;
    uint8_t bytes;
    uint16_t special;
} specials[] = {
    { "%tid.x", 4, PTX_TID_X },
    { "%tid.y", 4, PTX_TID_Y },
    { "%tid.z", 4, PTX_TID_Z },
    { "%ntid.x", 4, PTX_NTID_X },
    { "%ntid.y", 4, PTX_NTID_Y },
    { "%ntid.z", 4, PTX_NTID_Z },
    { "%ctaid.x", 4, PTX_CTAID_X },
    { "%ctaid.y", 4, PTX_CTAID_Y },
    { "%ctaid.z", 4, PTX_CTAID_Z },
    { "%nctaid.x", 4, PTX_NCTAID_X },
    { "%nctaid.y", 4, PTX_NCTAID_Y },
    { "%nctaid.z", 4, PTX_NCTAID_Z },
    { "%laneid", 4, PTX_LANEID },
    { "%warpid", 4, PTX_WARPID },
    { "%nwarpid", 4, PTX_NWARPID },
    { "%lanemask_eq", 4, PTX_LANEMASK_EQ },
    { "%lanemask_lt", 4, PTX_LANEMASK_LT },
    { "%lanemask_le", 4, PTX_LANEMASK_LE },
    { "%lanemask_gt", 4, PTX_LANEMASK_GT },
    { "%lanemask_ge", 4, PTX_LANEMASK_GE },
    { "%smid", 4, PTX_SMID },
    { "%nsmid", 4, PTX_NSMID },
    { "%gridid", 8, PTX_GRIDID },
    { "%dynamic_smem_size", 4, PTX_DYNAMIC_SMEM_SIZE },
    { "%total_smem_size", 4, PTX_TOTAL_SMEM_SIZE },
    { "%clock", 4, PTX_CLOCK },
    { "%clock64", 8, PTX_CLOCK64 },
    { "%globaltimer", 8, PTX_GLOBALTIMER },
};

/* Places shared memory of the module in the kernel that uses it. */
static void
place(ptx_parser *parser, ptx_symbol *symbol)
{
    ptx_kernel *kernel = parser->kernel;

    if (symbol->kind != PTX_SYMBOL_SHARED)
        return;
    if (symbol->dynamic) {
        parser->dynamic_align = MAX(parser->dynamic_align, symbol->align);
        symbol->value = 0;
    } else if (!symbol->placed) {
        symbol->value =
            ((uint64_t)kernel->shared_bytes + symbol->align - 1) & ~(uint64_t)(symbol->align - 1);
        if (symbol->value + symbol->bytes > PTX_SHARED_BYTES_MAX) {
            ptx_fail(parser, "too much shared memory");
            return;
        }
        kernel->shared_bytes = (uint32_t)(symbol->value + symbol->bytes);
    }
    symbol->placed = true;
}

static bool
name_operand(ptx_parser *parser, ptx_operand *operand)
{
    uint32_t index = 0;
    ptx_symbol *symbol = ptx_symbol_find(parser, parser->word, &index);

    if (symbol != NULL && symbol->kind == PTX_SYMBOL_REGISTER) {
        const uint32_t stride = symbol->width == 0 ? 4u : symbol->width * (uint32_t)PTX_LANES;

        operand->kind = PTX_OPERAND_REGISTER;
        operand->width = symbol->width;
        operand->offset = symbol->base + index * stride;
        return true;
    }
    if (symbol != NULL) {
        place(parser, symbol);
        operand->kind = PTX_OPERAND_NUMBER;
        operand->symbol = true;
        operand->space = symbol->space;
        operand->dynamic = symbol->dynamic;
        operand->value = symbol->value;
        return true;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(specials); i++)
        if (ptx_word_is(parser->word, specials[i].name)) {
            operand->kind = PTX_OPERAND_SPECIAL;
            operand->width = specials[i].bytes;
            operand->special = specials[i].special;
            return true;
        }
    if (ptx_word_is(parser->word, "_")) {
        operand->kind = PTX_OPERAND_SINK;
        return true;
    }
    if (ptx_word_is(parser->word, "WARP_SZ")) {
        operand->kind = PTX_OPERAND_NUMBER;
        operand->value = PTX_LANES;
        return true;
    }
    return false;
}

/* Parses a register, a number or a name; not an address or a list. */
static void
simple_operand(ptx_parser *parser, ptx_operand *operand)
{
    const bool negated = ptx_take_sign(parser, '!'), minus = ptx_take_sign(parser, '-');

    *operand = (ptx_operand){ .offset = PTX_NONE };
    if (parser->token != PTX_TOKEN_WORD ||
        (!name_operand(parser, operand) && !ptx_number_of(parser->word, operand))) {
        ptx_fail(parser, "unknown operand \"%.*s\"",
                 parser->token == PTX_TOKEN_WORD ? (int)MIN(parser->word.length, 60) : 0,
                 parser->word.at);
        return;
    }
    ptx_next(parser);
    operand->negated = negated;
    if (minus && operand->kind == PTX_OPERAND_NUMBER && !operand->symbol)
        operand->value = 0 - operand->value;
    else if (minus && operand->kind == PTX_OPERAND_FLOAT)
        operand->value ^= UINT64_C(1) << (8 * operand->width - 1);
    else if (minus)
        ptx_fail(parser, "a sign before a name");
    /* A variable's address may have an offset. */
    if (operand->symbol && ptx_take_sign(parser, '+'))
        operand->value += ptx_take_number(parser);
    if (negated && (operand->kind != PTX_OPERAND_REGISTER || operand->width != 0))
        ptx_fail(parser, "! before what is no predicate");
}

/* [%rd1+16], [name+4], [16] */
static void
address_operand(ptx_parser *parser, ptx_operand *operand)
{
    simple_operand(parser, operand);
    if (operand->kind == PTX_OPERAND_REGISTER) {
        if (operand->width != 4 && operand->width != 8)
            ptx_fail(parser, "an address in a register of %u bits", 8 * operand->width);
        if (ptx_take_sign(parser, '+')) {
            const bool minus = ptx_take_sign(parser, '-');
            const uint64_t offset = ptx_take_number(parser);

            operand->value = minus ? 0 - offset : offset;
        }
    } else if (operand->kind != PTX_OPERAND_NUMBER) {
        ptx_fail(parser, "an address that is not known here");
    }
    operand->kind = PTX_OPERAND_ADDRESS;
    ptx_expect_sign(parser, ']');
}

static ptx_operand *
operand_new(Statement *s)
{
    if (s->operands_count == PTX_OPERANDS_MAX) {
        ptx_fail(s->parser, "too many operands");
        return &s->operands[PTX_OPERANDS_MAX - 1];
    }
    return &s->operands[s->operands_count++];
}

static void
take_operand(Statement *s)
{
    ptx_parser *parser = s->parser;
    ptx_operand *operand = operand_new(s);

    if (ptx_take_sign(parser, '[')) {
        address_operand(parser, operand);
        return;
    }
    if (ptx_take_sign(parser, '{')) {
        *operand = (ptx_operand){ .kind = PTX_OPERAND_LIST, .offset = PTX_NONE };
        do {
            operand->value++;
            simple_operand(parser, operand_new(s));
        } while (!parser->failed && ptx_take_sign(parser, ','));
        ptx_expect_sign(parser, '}');
        return;
    }
    simple_operand(parser, operand);
    if (ptx_take_sign(parser, '|')) {
        operand = operand_new(s);
        simple_operand(parser, operand);
        operand->second = true;
    }
}

static void
take_operands(Statement *s)
{
    if (ptx_take_sign(s->parser, ';'))
        return;
    do
        take_operand(s);
    while (!s->parser->failed && ptx_take_sign(s->parser, ','));
    ptx_expect_sign(s->parser, ';');
}

uint32_t
ptx_filled_register(ptx_parser *parser, uint32_t width, uint64_t value, uint16_t special,
                    bool dynamic)
{
    ptx_filled filled = { .special = special, .bytes = (uint8_t)width, .value = value };
    uint32_t at;

    for (guint i = 0; i < parser->filled->len && !dynamic; i++) {
        const ptx_filled *other = &g_array_index(parser->filled, ptx_filled, i);

        if (other->value == value && other->bytes == width && other->special == special &&
            !other->dynamic)
            return other->offset;
    }
    filled.offset = ptx_register_new(parser, width, 1);
    filled.dynamic = dynamic;
    at = parser->filled->len;
    g_array_append_val(parser->filled, filled);
    if (dynamic)
        g_array_append_val(parser->dynamic_filled, at);
    return filled.offset;
}

static bool
is_float_type(enum ptx_type type)
{
    return type == PTX_F32 || type == PTX_F64 || type == PTX_F16 || type == PTX_BF16;
}

/* Returns a float literal as bits of the type. */
static uint64_t
float_value(ptx_parser *parser, const ptx_operand *operand, uint32_t width)
{
    if (operand->width == width)
        return operand->value;
    if (width == 4)
        return ptx_bits_of((float)ptx_double_of(operand->value));
    if (width == 8)
        return ptx_bits_of_double((double)ptx_float_of((uint32_t)operand->value));
    ptx_fail(parser, "a float literal of a size that is not known here");
    return 0;
}

/* The register of a source operand, of @width bytes per lane; allocates one for a constant. */
static uint32_t
source(Statement *s, const ptx_operand *operand, uint32_t width, enum ptx_type type)
{
    ptx_parser *parser = s->parser;

    switch (operand->kind) {
    case PTX_OPERAND_REGISTER:
        if (operand->width != width)
            ptx_fail(parser, "\"%.*s\" has an operand of %u bits where %u are due",
                     (int)s->opcode.length, s->opcode.at, MAX(1, 8 * operand->width),
                     MAX(1, 8 * width));
        return operand->offset;
    case PTX_OPERAND_SPECIAL:
        if (operand->width != width)
            ptx_fail(parser, "a special register of %u bits where %u are due", 8 * operand->width,
                     8 * width);
        return ptx_filled_register(parser, width, 0, operand->special, false);
    case PTX_OPERAND_FLOAT:
        if (width == 0 || width == 2)
            ptx_fail(parser, "a float literal where none is due");
        return ptx_filled_register(parser, width, float_value(parser, operand, width), 0, false);
    case PTX_OPERAND_NUMBER:
        if (operand->symbol && width != 8 && !(width == 4 && operand->space == PTX_SHARED))
            ptx_fail(parser, "an address in %u bits", 8 * width);
        if (!operand->symbol && (type == PTX_F32 || type == PTX_F64) && operand->value != 0)
            ptx_fail(parser, "an integer literal where a float is due");
        return ptx_filled_register(parser, width, operand->value, 0, operand->dynamic);
    default:
        ptx_fail(parser, "\"%.*s\" has an operand of a wrong kind", (int)s->opcode.length,
                 s->opcode.at);
        return 0;
    }
}

static uint32_t
destination(Statement *s, const ptx_operand *operand, uint32_t width)
{
    if (operand->kind == PTX_OPERAND_SINK)
        return PTX_NONE;
    if (operand->kind != PTX_OPERAND_REGISTER || operand->width != width || operand->negated)
        ptx_fail(s->parser, "\"%.*s\" has a result that is no register of %u bits",
                 (int)s->opcode.length, s->opcode.at, MAX(1, 8 * width));
    return operand->offset;
}

/* ---- modifiers ---- */

/* Takes the next modifier if it is @text. */
static bool
take(Statement *s, const char *text)
{
    if (s->words_taken == s->words_count || !ptx_word_is(s->words[s->words_taken], text))
        return false;
    s->words_taken++;
    return true;
}

/* Takes the next modifier if it is one of @texts and returns its index; -1 if not. */
static int
take_one(Statement *s, const char *const *texts)
{
    for (int i = 0; texts[i] != NULL; i++)
        if (take(s, texts[i]))
            return i;
    return -1;
}

static void
modifiers_end(Statement *s)
{
    if (s->words_taken < s->words_count)
        ptx_fail(s->parser, "\"%.*s\" with a modifier that is not known here: \"%.*s\"",
                 (int)s->opcode.length, s->opcode.at, (int)MIN(s->words[s->words_taken].length, 60),
                 s->words[s->words_taken].at);
}

static enum ptx_type
take_type_word(Statement *s)
{
    enum ptx_type type = PTX_NO_TYPE;

    if (s->words_taken < s->words_count)
        type = ptx_type_of(s->words[s->words_taken]);
    if (type != PTX_NO_TYPE)
        s->words_taken++;
    else if (s->words_taken < s->words_count)
        modifiers_end(s);
    else
        ptx_fail(s->parser, "\"%.*s\" has no type", (int)s->opcode.length, s->opcode.at);
    return type;
}

static const ptx_operand *
operand_at(Statement *s, uint32_t index)
{
    static const ptx_operand none = { .kind = PTX_OPERAND_SINK, .offset = PTX_NONE };

    if (index < s->operands_count)
        return &s->operands[index];
    ptx_fail(s->parser, "\"%.*s\" with too few operands", (int)s->opcode.length, s->opcode.at);
    return &none;
}

static void
operands_end(Statement *s, uint32_t count)
{
    if (s->operands_count != count)
        ptx_fail(s->parser, "\"%.*s\" with %u operands where %u are due", (int)s->opcode.length,
                 s->opcode.at, s->operands_count, count);
}

static ptx_instruction *
instruction(Statement *s, ptx_function run, enum ptx_step step)
{
    ptx_instruction *in = ptx_instruction_new(s->parser, s->guard, s->guard_negated);

    in->run = run;
    in->step = (uint8_t)step;
    return in;
}

/* ---- forms ---- */

static const struct {
    const char *word;
    uint8_t value;
} compares[] = {
    { "eq", PTX_EQ },   { "ne", PTX_NE },   { "lt", PTX_LT },   { "le", PTX_LE },
    { "gt", PTX_GT },   { "ge", PTX_GE },   { "lo", PTX_LT },   { "ls", PTX_LE },
    { "hi", PTX_GT },   { "hs", PTX_GE },   { "equ", PTX_EQU }, { "neu", PTX_NEU },
    { "ltu", PTX_LTU }, { "leu", PTX_LEU }, { "gtu", PTX_GTU }, { "geu", PTX_GEU },
    { "num", PTX_NUM }, { "nan", PTX_NAN },
};

static const struct {
    const char *word;
    uint8_t value;
} roundings[] = { { "rn", PTX_RN },  { "rz", PTX_RZ },  { "rm", PTX_RM },  { "rp", PTX_RP },
                  { "rni", PTX_RN }, { "rzi", PTX_RZ }, { "rmi", PTX_RM }, { "rpi", PTX_RP } };

static const char *const classes[] = { "finite", "infinite",  "number", "notanumber",
                                       "normal", "subnormal", NULL };

/* Passes a modifier on to the instruction's function. */
static void
apply_word(ptx_instruction *in, ptx_word word, bool compare)
{
    const enum ptx_type type = ptx_type_of(word);

    if (type != PTX_NO_TYPE && in->type == PTX_NO_TYPE)
        in->type = (uint8_t)type;
    else if (type != PTX_NO_TYPE)
        in->type2 = (uint8_t)type;
    for (size_t i = 0; i < G_N_ELEMENTS(roundings); i++)
        if (ptx_word_is(word, roundings[i].word)) {
            in->rounding = roundings[i].value;
            in->rounds = true;
        }
    for (size_t i = 0; i < G_N_ELEMENTS(compares) && compare; i++)
        if (ptx_word_is(word, compares[i].word))
            in->compare = compares[i].value;
    for (uint8_t i = 0; classes[i] != NULL; i++)
        if (ptx_word_is(word, classes[i]))
            in->mode = i;
    in->ftz |= ptx_word_is(word, "ftz");
    in->sat |= ptx_word_is(word, "sat");
    in->trans |= ptx_word_is(word, "relu");
    if (ptx_word_is(word, "and"))
        in->boolean = PTX_BOOL_AND;
    else if (ptx_word_is(word, "or"))
        in->boolean = PTX_BOOL_OR;
    else if (ptx_word_is(word, "xor"))
        in->boolean = PTX_BOOL_XOR;
}

/* Whether @word is one of the alternatives "a|b|c" of length @length. */
static bool
is_one_of(ptx_word word, const char *alternatives, size_t length)
{
    const char *at = alternatives, *end = alternatives + length;

    while (at < end) {
        const char *bar = memchr(at, '|', (size_t)(end - at));
        const size_t n = (size_t)((bar != NULL ? bar : end) - at);

        if (word.length == n && memcmp(word.at, at, n) == 0)
            return true;
        at += n + 1;
    }
    return false;
}

/* Whether the modifiers match the form's, in its order. */
static bool
words_match(const Statement *s, const char *pattern)
{
    uint32_t taken = 0;

    while (*pattern != 0) {
        const bool optional = *pattern == '?';
        const char *start = pattern + optional;
        const size_t length = strcspn(start, " ");

        if (taken < s->words_count && is_one_of(s->words[taken], start, length))
            taken++;
        else if (!optional)
            return false;
        pattern = start + length + (start[length] == ' ');
    }
    return taken == s->words_count;
}

static uint32_t
width_of(char letter)
{
    switch (letter) {
    case 'h':
        return 2;
    case 'w':
        return 4;
    case 'd':
        return 8;
    default:
        return 0;
    }
}

/* Minimum and maximum number of operands of a signature. */
static void
signature_range(const char *signature, uint32_t *least, uint32_t *most)
{
    *least = *most = 0;
    for (const char *at = signature; *at != 0; at++) {
        if (*at == '=' || *at == 'C')
            continue;
        if (*at == '?') {
            at++;
            *most += 1;
            continue;
        }
        *least += 1;
        *most += 1;
    }
}

static const ptx_form *
find_form(const Statement *s, bool *opcode_known)
{
    uint32_t count = s->operands_count, least, most;

    for (uint32_t i = 0; i < s->operands_count; i++)
        count -= s->operands[i].second;
    for (const ptx_form *form = s->parser->forms; form->opcode != NULL; form++) {
        if (!ptx_word_is(s->opcode, form->opcode))
            continue;
        *opcode_known = true;
        signature_range(form->operands, &least, &most);
        if (form->modifiers[0] != '#' && count >= least && count <= most &&
            words_match(s, form->modifiers))
            return form;
    }
    return NULL;
}

/* The function of a form with these modifiers: "#pack" is an internal one without a text form. */
static ptx_function
hidden_form(const Statement *s, const char *opcode, const char *name)
{
    for (const ptx_form *form = s->parser->forms; form->opcode != NULL; form++)
        if (strcmp(form->opcode, opcode) == 0 && strcmp(form->modifiers, name) == 0)
            return form->run;
    g_assert_not_reached();
}

static void
form_operands(Statement *s, ptx_instruction *in, const char *signature)
{
    uint32_t *const sources[] = { &in->a, &in->b, &in->c, &in->f };
    uint32_t next = 0, filled = 0;
    bool result = true;

    for (const char *at = signature; *at != 0 && !s->parser->failed; at++) {
        const enum ptx_type type = in->type2 != PTX_NO_TYPE && *at == 'w' && in->type2 != PTX_F32
                                       ? (enum ptx_type)in->type2
                                       : (enum ptx_type)in->type;

        if (*at == '=') {
            result = false;
        } else if (result) {
            in->d = destination(s, operand_at(s, next++), width_of(*at));
            if (next < s->operands_count && s->operands[next].second && *at == 'P')
                in->e = destination(s, operand_at(s, next++), 0);
        } else if (*at == 'C') {
            if (s->parser->carry == PTX_NONE)
                s->parser->carry = ptx_register_new(s->parser, 0, 1);
            in->f = s->parser->carry;
        } else if (*at == 'i') {
            const ptx_operand *operand = operand_at(s, next++);

            if (operand->kind != PTX_OPERAND_NUMBER || operand->symbol)
                ptx_fail(s->parser, "an operand that must be a number");
            in->immediate = operand->value;
        } else if (*at == '?') {
            at++;
            if ((in->boolean != PTX_BOOL_NONE) != (next < s->operands_count))
                ptx_fail(s->parser, "a comparison with a wrong number of operands");
            if (next < s->operands_count) {
                in->negated = s->operands[next].negated;
                in->c = source(s, operand_at(s, next++), 0, PTX_PRED);
            }
        } else {
            const ptx_operand *operand = operand_at(s, next++);

            if (operand->negated)
                ptx_fail(s->parser, "! before an operand that cannot have it");
            *sources[filled++] = source(s, operand, width_of(*at),
                                        width_of(*at) == ptx_type_bytes(type) ? type : PTX_NO_TYPE);
        }
    }
    if (next != s->operands_count)
        ptx_fail(s->parser, "\"%.*s\" with operands that are not known here", (int)s->opcode.length,
                 s->opcode.at);
}

/* Start of the straight-line code before the current position, in which every instruction writes
 * its own operands, not a list. */
static guint
straight_from(const ptx_parser *parser)
{
    const GArray *labels = parser->labels;
    guint at = labels->len == 0 ? 0 : g_array_index(labels, ptx_label, labels->len - 1).at;

    for (guint i = at; i + 1 < parser->code->len; i++) {
        const ptx_instruction *in = &g_array_index(parser->code, ptx_instruction, i);

        if ((in->step != PTX_STEP_LANES && in->step != PTX_STEP_ROUNDED) ||
            (in->d == PTX_NONE && in->e == PTX_NONE))
            at = i + 1;
    }
    return at;
}

static bool
writes(const ptx_instruction *in, uint32_t of)
{
    return in->d == of || in->e == of;
}

/* The fp32 product without explicit rounding that register @of holds at the end of the code, with
 * its factors unchanged; NULL if there is none. */
static const ptx_instruction *
product_in(const Statement *s, uint32_t of, const ptx_instruction *sum)
{
    const ptx_function multiply = hidden_form(s, "mul", PTX_ROUND "?ftz ?sat f32");
    const GArray *code = s->parser->code;
    const guint from = straight_from(s->parser);
    guint at = code->len - 1;

    while (at > from && !writes(&g_array_index(code, ptx_instruction, at - 1), of))
        at--;
    if (at == from)
        return NULL;
    const ptx_instruction *in = &g_array_index(code, ptx_instruction, at - 1);

    if (in->run != multiply || in->rounds || in->sat || in->ftz != sum->ftz ||
        in->guard != sum->guard || in->guard_negated != sum->guard_negated)
        return NULL;
    for (guint i = at - 1; i + 1 < code->len; i++) {
        const ptx_instruction *later = &g_array_index(code, ptx_instruction, i);

        if (writes(later, in->a) || writes(later, in->b) ||
            (in->guard != PTX_NONE && writes(later, in->guard)))
            return NULL;
    }
    return in;
}

/*
 * Fuses a product and a sum without explicit rounding into one instruction that rounds once, as
 * ptxas does wherever it can. Here only for fp32, with nothing but arithmetic in between.
 */
static void
contract(const Statement *s, ptx_instruction *in)
{
    const bool subtracts = ptx_word_is(s->opcode, "sub");
    const char *form = subtracts ? "#minus" : PTX_ROUNDED "?ftz ?sat f32";
    const ptx_instruction *product;
    uint32_t other = in->b;

    if ((!subtracts && !ptx_word_is(s->opcode, "add")) || in->type != PTX_F32 || in->rounds)
        return;
    product = product_in(s, in->a, in);
    if (product == NULL) {
        product = product_in(s, in->b, in);
        other = in->a;
        form = subtracts ? "#of minus" : form;
    }
    if (product == NULL)
        return;
    in->run = hidden_form(s, "fma", form);
    in->a = product->a;
    in->b = product->b;
    in->c = other;
}

static void
decode_form(Statement *s)
{
    bool opcode_known = false;
    const ptx_form *form = find_form(s, &opcode_known);
    const bool compare = ptx_word_is(s->opcode, "setp") || ptx_word_is(s->opcode, "set");
    ptx_instruction *in, made;

    if (form == NULL) {
        const ptx_word *word = s->words_count > 0 ? &s->words[0] : &s->opcode;
        const ptx_word *last = s->words_count > 0 ? &s->words[s->words_count - 1] : &s->opcode;

        ptx_fail(s->parser,
                 opcode_known ? "\"%.*s\" with modifiers or operands that are not known here: "
                                "\"%.*s\""
                              : "unknown instruction \"%.*s\", \"%.*s\"",
                 (int)MIN(s->opcode.length, 60), s->opcode.at,
                 (int)MIN(last->at + last->length - word->at, 80), word->at);
        return;
    }
    in = instruction(s, form->run, PTX_STEP_LANES);
    if (s->parser->failed)
        return;
    for (uint32_t i = 0; i < s->words_count; i++)
        apply_word(in, s->words[i], compare);
    if (in->rounding != PTX_RN && !ptx_word_is(s->opcode, "cvt"))
        in->step = PTX_STEP_ROUNDED;
    made = *in;
    form_operands(s, &made, form->operands);
    if (!s->parser->failed)
        contract(s, &made);
    /* A result that nothing reads: the instruction becomes a no-op. */
    g_array_index(s->parser->code, ptx_instruction, s->parser->code->len - 1) = made;
    if (made.d == PTX_NONE && made.e == PTX_NONE && !s->parser->failed)
        ptx_fail(s->parser, "\"%.*s\" without a result", (int)s->opcode.length, s->opcode.at);
}

/* ---- moves and conversions ---- */

/* Appends the registers of a list, of @width bytes each, to the operands. */
static uint32_t
list_of(Statement *s, uint32_t first, uint32_t count, uint32_t width, bool results,
        enum ptx_type type)
{
    const uint32_t at = s->parser->operands->len;

    for (uint32_t i = 0; i < count; i++) {
        const ptx_operand *operand = operand_at(s, first + i);
        const uint32_t offset =
            results ? destination(s, operand, width) : source(s, operand, width, type);

        g_array_append_val(s->parser->operands, offset);
    }
    return at;
}

/* mov.b64 %rd1, {%r1, %r2}; mov.b32 {%rs1, %rs2}, %r1; */
static void
decode_mov(Statement *s)
{
    const bool unpack = s->operands_count > 0 && s->operands[0].kind == PTX_OPERAND_LIST;
    const bool pack = s->operands_count > 1 && s->operands[1].kind == PTX_OPERAND_LIST;
    ptx_instruction made, *in;
    enum ptx_type type;
    uint32_t width, count;

    if (!pack && !unpack) {
        const ptx_operand *from = operand_at(s, 1);

        if (from->kind == PTX_OPERAND_SPECIAL && from->special >= PTX_CLOCK) {
            type = take_type_word(s);
            modifiers_end(s);
            operands_end(s, 2);
            in = instruction(s, ptx_clock, PTX_STEP_MEMORY);
            in->width = from->width;
            in->mode = from->special == PTX_GLOBALTIMER ? PTX_CLOCK_GLOBAL : 0;
            in->d = destination(s, operand_at(s, 0), from->width);
            if (ptx_type_bytes(type) != from->width)
                ptx_fail(s->parser, "a clock of another size");
            return;
        }
        decode_form(s);
        return;
    }
    type = take_type_word(s);
    modifiers_end(s);
    width = ptx_type_bytes(type);
    count = (uint32_t)operand_at(s, pack ? 1 : 0)->value;
    if ((width != 4 && width != 8) || (count != 2 && count != 4) || width / count < 2 ||
        (pack && unpack)) {
        ptx_fail(s->parser, "a mov between registers of sizes that are not known here");
        return;
    }
    operands_end(s, count + 2);
    in = instruction(s, hidden_form(s, "mov", pack ? "#pack" : "#unpack"), PTX_STEP_LANES);
    made = *in;
    made.width = (uint8_t)width;
    made.vector = (uint8_t)count;
    made.bytes = (uint8_t)(width / count);
    if (pack) {
        made.d = destination(s, operand_at(s, 0), width);
        made.immediate = list_of(s, 2, count, made.bytes, false, PTX_NO_TYPE);
        if (made.d == PTX_NONE)
            ptx_fail(s->parser, "\"mov\" without a result");
    } else {
        made.a = source(s, operand_at(s, count + 1), width, PTX_NO_TYPE);
        made.immediate = list_of(s, 1, count, made.bytes, true, PTX_NO_TYPE);
    }
    g_array_index(s->parser->code, ptx_instruction, s->parser->code->len - 1) = made;
}

static bool
is_integer(enum ptx_type type)
{
    return type >= PTX_U8 && type <= PTX_S64;
}

/* Whether the manual allows these types and modifiers of a conversion together. */
static bool
conversion_allowed(const ptx_instruction *in, bool rounds, bool integer_rounding)
{
    const enum ptx_type to = (enum ptx_type)in->type, from = (enum ptx_type)in->type2;
    const bool to_float = is_float_type(to), from_float = is_float_type(from);

    if ((!to_float && !is_integer(to)) || (!from_float && !is_integer(from)))
        return false;
    if (to_float != from_float) /* .rni to integers, .rn to floats */
        return rounds && integer_rounding == !to_float;
    if (!to_float)
        return !rounds;
    if (ptx_type_bytes(to) < ptx_type_bytes(from))
        return rounds && !integer_rounding;
    if (to == from)
        return !rounds || integer_rounding;
    return ptx_type_bytes(to) > ptx_type_bytes(from) ? !rounds : rounds;
}

/* Conversions without a form of their own. */
static void
decode_cvt(Statement *s)
{
    static const char *const words[] = { "rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi", NULL };
    bool opcode_known = false;
    ptx_instruction made, *in;
    int rounding;

    if (find_form(s, &opcode_known) != NULL) {
        const ptx_form *form = find_form(s, &opcode_known);

        /* A form requires registers of exactly its types' sizes. */
        if (s->operands_count != 2 || (s->operands[0].kind == PTX_OPERAND_REGISTER &&
                                       s->operands[0].width == width_of(form->operands[0]) &&
                                       s->operands[1].kind == PTX_OPERAND_REGISTER &&
                                       s->operands[1].width == width_of(form->operands[2]))) {
            decode_form(s);
            return;
        }
    }
    in = instruction(s, hidden_form(s, "cvt", "#any"), PTX_STEP_LANES);
    made = *in;
    rounding = take_one(s, words);
    made.rounding = (uint8_t)(rounding < 0 ? PTX_RN : rounding % 4);
    made.trans = take(s, "relu");
    made.ftz = take(s, "ftz");
    made.sat = take(s, "sat");
    made.type = (uint8_t)take_type_word(s);
    made.type2 = (uint8_t)take_type_word(s);
    modifiers_end(s);
    operands_end(s, 2);
    if (s->parser->failed)
        return;
    made.mode = rounding >= 4;
    made.width = operand_at(s, 0)->width;
    made.bytes = operand_at(s, 1)->width;
    if (operand_at(s, 1)->kind == PTX_OPERAND_NUMBER || operand_at(s, 1)->kind == PTX_OPERAND_FLOAT)
        made.bytes = (uint8_t)MAX(2, ptx_type_bytes(made.type2));
    if (!conversion_allowed(&made, rounding >= 0, rounding >= 4) ||
        made.width < ptx_type_bytes(made.type) || made.bytes < ptx_type_bytes(made.type2) ||
        made.width == 0 || made.bytes == 0) {
        ptx_fail(s->parser, "a conversion that is not known here");
        return;
    }
    made.d = destination(s, operand_at(s, 0), made.width);
    made.a = source(s, operand_at(s, 1), made.bytes, made.type2);
    g_array_index(s->parser->code, ptx_instruction, s->parser->code->len - 1) = made;
    if (made.d == PTX_NONE)
        ptx_fail(s->parser, "\"cvt\" without a result");
}

static const char *const space_words[] = { "global", "shared::cta", "shared", "param",
                                           "local",  "const",       NULL };
static const uint8_t space_values[] = { PTX_GLOBAL, PTX_SHARED, PTX_SHARED,
                                        PTX_PARAM,  PTX_LOCAL,  PTX_CONST };

static uint64_t
window_of(enum ptx_space space)
{
    switch (space) {
    case PTX_SHARED:
        return PTX_WINDOW_SHARED;
    case PTX_LOCAL:
        return PTX_WINDOW_LOCAL;
    case PTX_PARAM:
        return PTX_WINDOW_PARAM;
    default:
        return 0;
    }
}

/* cvta.to.global.u64, cvta.shared.u64 */
static void
decode_cvta(Statement *s)
{
    const bool to = take(s, "to");
    const int space = take_one(s, space_words);
    uint64_t window;
    ptx_instruction *in;
    uint32_t d, a;

    if (space < 0 || take_type_word(s) != PTX_U64)
        ptx_fail(s->parser, "a cvta that is not known here");
    modifiers_end(s);
    operands_end(s, 2);
    if (s->parser->failed)
        return;
    window = window_of((enum ptx_space)space_values[space]);
    d = destination(s, operand_at(s, 0), 8);
    a = source(s, operand_at(s, 1), 8, PTX_U64);
    in = instruction(s, to && window != 0 ? ptx_to_window : hidden_form(s, "cvta", "#add"),
                     to && window != 0 ? PTX_STEP_MEMORY : PTX_STEP_LANES);
    in->d = d;
    in->a = a;
    in->immediate = to ? window : window << PTX_WINDOW_SHIFT;
    if (d == PTX_NONE)
        ptx_fail(s->parser, "\"cvta\" without a result");
}

static void
decode_isspacep(Statement *s)
{
    const int space = take_one(s, space_words);
    uint32_t d, a;
    ptx_instruction *in;

    if (space < 0 || space_values[space] == PTX_CONST)
        ptx_fail(s->parser, "an isspacep that is not known here");
    modifiers_end(s);
    operands_end(s, 2);
    if (s->parser->failed)
        return;
    d = destination(s, operand_at(s, 0), 0);
    a = source(s, operand_at(s, 1), 8, PTX_U64);
    in = instruction(s, hidden_form(s, "isspacep", "#window"), PTX_STEP_LANES);
    in->d = d;
    in->a = a;
    in->immediate = window_of((enum ptx_space)space_values[space]);
    if (d == PTX_NONE)
        ptx_fail(s->parser, "\"isspacep\" without a result");
}

/* ---- memory ---- */

/* The base register and the offset of an address. */
static void
bind_address(Statement *s, const ptx_operand *operand, ptx_instruction *in, bool second)
{
    uint32_t note = (s->parser->code->len - 1) << 1 | (uint32_t)second;

    if (operand->kind != PTX_OPERAND_ADDRESS) {
        ptx_fail(s->parser, "\"%.*s\" without an address", (int)s->opcode.length, s->opcode.at);
        return;
    }
    if (second) {
        in->b = operand->offset;
        in->address2 = operand->width;
        in->immediate2 = operand->value;
    } else {
        in->a = operand->offset;
        in->address = operand->width;
        in->immediate = operand->value;
    }
    if (operand->dynamic)
        g_array_append_val(s->parser->dynamic_code, note);
}

/* A variable must be in the space of the instruction. Parameters of a call are local. */
static uint8_t
space_of(Statement *s, const ptx_operand *address, uint8_t space)
{
    const uint8_t given = address->symbol ? address->space : PTX_GENERIC;

    if (!address->symbol)
        return space;
    if (space == PTX_PARAM && given == PTX_LOCAL)
        return PTX_LOCAL;
    if (space != given && !(space == PTX_GENERIC && (given == PTX_GLOBAL || given == PTX_CONST)))
        ptx_fail(s->parser, "a name of another space");
    return space;
}

static const char *const access_words[] = { "volatile", "relaxed", "acquire", "release",
                                            "acq_rel",  "weak",    NULL };
static const char *const scope_words[] = { "cta", "gpu", "sys", "cluster", NULL };
static const char *const cache_words[] = { "ca",
                                           "cg",
                                           "cs",
                                           "cv",
                                           "lu",
                                           "wb",
                                           "wt",
                                           "nc",
                                           "L2::64B",
                                           "L2::128B",
                                           "L2::256B",
                                           "L1::evict_normal",
                                           "L1::evict_unchanged",
                                           "L1::evict_first",
                                           "L1::evict_last",
                                           "L1::no_allocate",
                                           "L2::evict_last",
                                           "L2::evict_first",
                                           "L2::evict_normal",
                                           NULL };

/* ld.global.nc.L2::128B.v4.f32: parses everything but the type and the operands. */
static void
access_modifiers(Statement *s, ptx_instruction *in)
{
    static const char *const vectors[] = { "v2", "v4", NULL };
    const int order = take_one(s, access_words);
    int space, vector;

    if (order >= 1 && order <= 4 && take_one(s, scope_words) < 0)
        ptx_fail(s->parser, "\"%.*s\" without a scope", (int)s->opcode.length, s->opcode.at);
    in->strong = order >= 0 && order <= 4;
    space = take_one(s, space_words);
    in->space = space < 0 ? PTX_GENERIC : space_values[space];
    while (take_one(s, cache_words) >= 0)
        continue;
    vector = take_one(s, vectors);
    in->vector = vector < 0 ? 1 : vector == 0 ? 2 : 4;
    in->type = (uint8_t)take_type_word(s);
    in->bytes = (uint8_t)ptx_type_bytes(in->type);
    modifiers_end(s);
    if (in->bytes == 0 || in->type == PTX_F16X2 || in->type == PTX_BF16X2 || in->type == PTX_TF32 ||
        in->type == PTX_F32X2)
        ptx_fail(s->parser, "an access of a type that is not known here");
    if (in->bytes * in->vector > 32)
        ptx_fail(s->parser, "an access that is too wide");
}

static void
note_granule(Statement *s, const ptx_instruction *in)
{
    const uint32_t shift = in->bytes == 1 ? 0 : in->bytes == 2 ? 1 : 2;

    if ((in->space == PTX_SHARED || in->space == PTX_GENERIC) && in->bytes * in->vector < 4 &&
        s->parser->kernel->granule_shift > shift)
        s->parser->kernel->granule_shift = shift;
}

static void
decode_access(Statement *s, bool store)
{
    ptx_instruction made = *instruction(s, store ? ptx_store : ptx_load, PTX_STEP_MEMORY);
    const ptx_operand *address, *values;
    uint32_t count;

    if (s->parser->failed)
        return;
    access_modifiers(s, &made);
    address = operand_at(s, 0);
    values = operand_at(s, 1);
    if (!store) {
        address = operand_at(s, s->operands_count > 0 ? s->operands_count - 1 : 0);
        values = operand_at(s, 0);
    }
    if (s->parser->failed)
        return;
    count = values->kind == PTX_OPERAND_LIST ? (uint32_t)values->value : 1;
    operands_end(s, 1 + count + (values->kind == PTX_OPERAND_LIST));
    if (count != made.vector || (values->kind == PTX_OPERAND_LIST) != (made.vector > 1))
        ptx_fail(s->parser, "a list of a wrong length");
    if (s->parser->failed)
        return;
    made.space = space_of(s, address, made.space);
    bind_address(s, address, &made, false);
    made.width = 0;
    for (uint32_t i = 0; i < count; i++) {
        const ptx_operand *value = values->kind == PTX_OPERAND_LIST ? &values[1 + i] : values;
        uint32_t width = value->width, offset;

        /* Registers may be wider than the data. */
        if (value->kind != PTX_OPERAND_REGISTER)
            width = value->kind == PTX_OPERAND_SINK && made.width != 0 ? made.width
                                                                       : MAX(2u, made.bytes);
        if (made.width == 0)
            made.width = (uint8_t)width;
        if (width < made.bytes || width != made.width)
            ptx_fail(s->parser, "a register of %u bits for a type of %u", 8 * width,
                     8 * made.bytes);
        offset = store ? source(s, value, width, (enum ptx_type)made.type)
                       : destination(s, value, width);
        if (i == 0)
            made.d = s->parser->operands->len;
        g_array_append_val(s->parser->operands, offset);
    }
    if (store && (made.space == PTX_PARAM || made.space == PTX_CONST))
        ptx_fail(s->parser, "a store to what cannot be written");
    note_granule(s, &made);
    g_array_index(s->parser->code, ptx_instruction, s->parser->code->len - 1) = made;
}

static void
decode_ld(Statement *s)
{
    decode_access(s, false);
}

static void
decode_st(Statement *s)
{
    decode_access(s, true);
}

static const char *const atomic_words[] = { "add",  "min", "max", "and", "or", "xor",
                                            "exch", "cas", "inc", "dec", NULL };

static bool
atomic_allowed(const ptx_instruction *in)
{
    const bool is_f = is_float_type(in->type) || in->type == PTX_F16X2 || in->type == PTX_BF16X2;
    const bool is_i =
        in->type == PTX_U32 || in->type == PTX_S32 || in->type == PTX_U64 || in->type == PTX_S64;
    const bool is_b = in->type == PTX_B32 || in->type == PTX_B64;

    switch (in->mode) {
    case PTX_ATOMIC_ADD:
        return is_f || (is_i && in->type != PTX_S64);
    case PTX_ATOMIC_MIN:
    case PTX_ATOMIC_MAX:
        return is_i;
    case PTX_ATOMIC_INC:
    case PTX_ATOMIC_DEC:
        return in->type == PTX_U32;
    case PTX_ATOMIC_EXCH:
        return is_b;
    case PTX_ATOMIC_CAS:
        return is_b || in->type == PTX_B16;
    default:
        return is_b;
    }
}

/* atom.relaxed.gpu.global.add.noftz.f32 d, [a], b; red the same without d. */
static void
decode_atomic(Statement *s)
{
    const bool reduces = ptx_word_is(s->opcode, "red");
    ptx_instruction made = *instruction(s, ptx_atomic, PTX_STEP_MEMORY);
    uint32_t next = 0, width;
    int space, mode;

    if (s->parser->failed)
        return;
    (void)take_one(s, access_words);
    (void)take_one(s, scope_words);
    space = take_one(s, space_words);
    made.space = space < 0 ? PTX_GENERIC : space_values[space];
    mode = take_one(s, atomic_words);
    (void)take(s, "noftz");
    made.mode = (uint8_t)(mode < 0 ? 0 : mode);
    made.type = (uint8_t)take_type_word(s);
    modifiers_end(s);
    if (mode < 0 ||
        (made.space != PTX_GENERIC && made.space != PTX_GLOBAL && made.space != PTX_SHARED) ||
        !atomic_allowed(&made))
        ptx_fail(s->parser, "an atomic that is not known here");
    made.bytes = made.width = (uint8_t)ptx_type_bytes(made.type);
    made.vector = 1;
    made.strong = true;
    width = made.width;
    operands_end(s, 2u + !reduces + (made.mode == PTX_ATOMIC_CAS));
    if (s->parser->failed)
        return;
    if (!reduces)
        made.d = destination(s, operand_at(s, next++), width);
    made.space = space_of(s, operand_at(s, next), made.space);
    bind_address(s, operand_at(s, next++), &made, false);
    made.c = source(s, operand_at(s, next++), width, (enum ptx_type)made.type);
    if (made.mode == PTX_ATOMIC_CAS)
        made.f = source(s, operand_at(s, next++), width, (enum ptx_type)made.type);
    note_granule(s, &made);
    g_array_index(s->parser->code, ptx_instruction, s->parser->code->len - 1) = made;
}

static bool
take_shared(Statement *s)
{
    return take(s, "shared") || take(s, "shared::cta");
}

/* cp.async.cg.shared.global.L2::128B [to], [from], 16, bytes; */
static void
decode_copy(Statement *s)
{
    ptx_instruction made = *instruction(s, ptx_copy_async, PTX_STEP_MEMORY);
    const bool cached = take(s, "ca");
    const ptx_operand *size;

    if (s->parser->failed)
        return;
    if ((!cached && !take(s, "cg")) || !take_shared(s) || !take(s, "global"))
        ptx_fail(s->parser, "a cp.async that is not known here");
    if (!take(s, "L2::64B") && !take(s, "L2::128B"))
        (void)take(s, "L2::256B");
    modifiers_end(s);
    size = operand_at(s, 2);
    if (size->kind != PTX_OPERAND_NUMBER || size->symbol ||
        !(size->value == 16 || (cached && (size->value == 4 || size->value == 8))))
        ptx_fail(s->parser, "a cp.async of a size that is not known here");
    if (s->operands_count != 3)
        operands_end(s, 4);
    if (s->parser->failed)
        return;
    if ((operand_at(s, 0)->symbol && operand_at(s, 0)->space != PTX_SHARED) ||
        (operand_at(s, 1)->symbol && operand_at(s, 1)->space != PTX_GLOBAL))
        ptx_fail(s->parser, "a name of another space");
    made.bytes = (uint8_t)size->value;
    bind_address(s, operand_at(s, 0), &made, false);
    bind_address(s, operand_at(s, 1), &made, true);
    if (s->operands_count == 4) {
        const ptx_operand *last = operand_at(s, 3);

        if (last->kind == PTX_OPERAND_REGISTER && last->width == 0) { /* ignore-src */
            made.f = last->offset;
            made.negated = last->negated;
        } else {
            made.c = source(s, last, 4, PTX_U32);
        }
    }
    g_array_index(s->parser->code, ptx_instruction, s->parser->code->len - 1) = made;
}

static void
decode_cp(Statement *s)
{
    ptx_instruction *in;

    if (!take(s, "async")) {
        ptx_fail(s->parser, "a cp that is not known here");
        return;
    }
    if (take(s, "commit_group")) {
        modifiers_end(s);
        operands_end(s, 0);
        instruction(s, ptx_copy_commit, PTX_STEP_MEMORY);
        return;
    }
    if (take(s, "wait_all")) {
        modifiers_end(s);
        operands_end(s, 0);
        in = instruction(s, ptx_copy_wait, PTX_STEP_MEMORY);
        in->mode = 1;
        return;
    }
    if (take(s, "wait_group")) {
        const ptx_operand *keep = operand_at(s, 0);

        modifiers_end(s);
        operands_end(s, 1);
        if (keep->kind != PTX_OPERAND_NUMBER || keep->symbol || keep->value > UINT32_MAX)
            ptx_fail(s->parser, "an operand that must be a number");
        in = instruction(s, ptx_copy_wait, PTX_STEP_MEMORY);
        in->immediate = keep->value;
        return;
    }
    decode_copy(s);
}

/* ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {...}, [a]; stmatrix [a], {...}; */
static void
decode_matrix(Statement *s)
{
    static const char *const counts[] = { "x1", "x2", "x4", NULL };
    const bool store = ptx_word_is(s->opcode, "stmatrix");
    ptx_instruction made =
        *instruction(s, store ? ptx_store_matrix : ptx_load_matrix, PTX_STEP_TOGETHER);
    const bool shape = take(s, "sync") && take(s, "aligned") && take(s, "m8n8");
    const int count = take_one(s, counts);
    const ptx_operand *list, *address;

    if (s->parser->failed)
        return;
    made.trans = take(s, "trans");
    if (!shape || count < 0 || !take_shared(s) || !take(s, "b16"))
        ptx_fail(s->parser, "\"%.*s\" with modifiers that are not known here",
                 (int)s->opcode.length, s->opcode.at);
    modifiers_end(s);
    made.vector = (uint8_t)(1 << MAX(count, 0));
    operands_end(s, 2u + made.vector);
    list = operand_at(s, store ? 1 : 0);
    address = operand_at(s, store ? 0 : s->operands_count - 1);
    if (s->parser->failed)
        return;
    if (list->kind != PTX_OPERAND_LIST || list->value != made.vector)
        ptx_fail(s->parser, "a list of a wrong length");
    made.aligned = true;
    made.space = space_of(s, address, PTX_SHARED);
    bind_address(s, address, &made, false);
    made.d = list_of(s, store ? 2 : 1, made.vector, 4, !store, PTX_B32);
    g_array_index(s->parser->code, ptx_instruction, s->parser->code->len - 1) = made;
}

/* ---- mma ---- */

/* Shapes and types that ptx_mma.c supports, and numbers of registers of d, a, b, c. */
static const struct {
    const char *words; /* after mma.sync.aligned */
    uint8_t kind;
    uint8_t registers[4];
} products[] = {
    { "m16n8k16.row.col.f32.bf16.bf16.f32", PTX_MMA_K16_BF16, { 4, 4, 2, 4 } },
    { "m16n8k8.row.col.f32.bf16.bf16.f32", PTX_MMA_K8_BF16, { 4, 2, 1, 4 } },
    { "m16n8k16.row.col.f32.f16.f16.f32", PTX_MMA_K16_F16, { 4, 4, 2, 4 } },
    { "m16n8k8.row.col.f32.f16.f16.f32", PTX_MMA_K8_F16, { 4, 2, 1, 4 } },
    { "m16n8k16.row.col.f16.f16.f16.f16", PTX_MMA_K16_F16_F16, { 2, 4, 2, 2 } },
    { "m16n8k8.row.col.f32.tf32.tf32.f32", PTX_MMA_K8_TF32, { 4, 4, 2, 4 } },
    { "m16n8k4.row.col.f32.tf32.tf32.f32", PTX_MMA_K4_TF32, { 4, 2, 1, 4 } },
};

static void
decode_mma(Statement *s)
{
    ptx_instruction made = *instruction(s, hidden_form(s, "mma", "#product"), PTX_STEP_TOGETHER);
    const ptx_word *last = &s->words[s->words_count - 1];
    uint32_t next = 0;
    size_t kind = 0;
    ptx_word rest;

    if (s->parser->failed)
        return;
    if (s->words_count < 4 || !take(s, "sync") || !take(s, "aligned")) {
        ptx_fail(s->parser, "an mma that is not known here");
        return;
    }
    rest.at = s->words[2].at;
    rest.length = (uint32_t)(last->at + last->length - rest.at);
    while (kind < G_N_ELEMENTS(products) && !ptx_word_is(rest, products[kind].words))
        kind++;
    if (kind == G_N_ELEMENTS(products)) {
        ptx_fail(s->parser, "an mma that is not known here: \"%.*s\"", (int)MIN(rest.length, 100),
                 rest.at);
        return;
    }
    made.mode = products[kind].kind;
    made.aligned = true;
    made.immediate = s->parser->operands->len;
    for (uint32_t matrix = 0; matrix < 4 && !s->parser->failed; matrix++) {
        const uint32_t count = products[kind].registers[matrix];
        const ptx_operand *list = operand_at(s, next++);
        const uint8_t type = list->kind == PTX_OPERAND_LIST ? 1 : 0;

        /* A list of one register may omit its braces. */
        if (type == 0)
            next--;
        if ((type == 1 && list->value != count) || (type == 0 && count != 1))
            ptx_fail(s->parser, "a list of a wrong length");
        list_of(s, next, count, 4, matrix == 0, PTX_B32);
        next += count;
    }
    operands_end(s, next);
    for (uint32_t i = 0; i < products[kind].registers[0] && !s->parser->failed; i++)
        if (g_array_index(s->parser->operands, uint32_t, made.immediate + i) == PTX_NONE)
            ptx_fail(s->parser, "\"mma\" without a result");
    g_array_index(s->parser->code, ptx_instruction, s->parser->code->len - 1) = made;
}

/* ---- lanes together ---- */

static void
decode_shfl(Statement *s)
{
    static const char *const modes[] = { "up", "down", "bfly", "idx", NULL };
    ptx_instruction made = *instruction(s, ptx_shuffle, PTX_STEP_TOGETHER);
    const bool sync = take(s, "sync");
    const int mode = take_one(s, modes);
    uint32_t next = 0;

    if (s->parser->failed)
        return;
    if (!sync || mode < 0 || !take(s, "b32"))
        ptx_fail(s->parser, "a shfl that is not known here");
    modifiers_end(s);
    made.mode = (uint8_t)mode;
    made.d = destination(s, operand_at(s, next++), 4);
    if (next < s->operands_count && s->operands[next].second)
        made.e = destination(s, operand_at(s, next++), 0);
    made.a = source(s, operand_at(s, next++), 4, PTX_B32);
    made.b = source(s, operand_at(s, next++), 4, PTX_B32);
    made.c = source(s, operand_at(s, next++), 4, PTX_B32);
    made.f = source(s, operand_at(s, next++), 4, PTX_B32);
    operands_end(s, next);
    g_array_index(s->parser->code, ptx_instruction, s->parser->code->len - 1) = made;
}

static void
decode_vote(Statement *s)
{
    static const char *const modes[] = { "all", "any", "uni", "ballot", NULL };
    ptx_instruction made = *instruction(s, ptx_vote, PTX_STEP_TOGETHER);
    const bool sync = take(s, "sync");
    const int mode = take_one(s, modes);

    if (s->parser->failed)
        return;
    if (!sync || mode < 0 || !take(s, mode == PTX_VOTE_BALLOT ? "b32" : "pred"))
        ptx_fail(s->parser, "a vote that is not known here");
    modifiers_end(s);
    operands_end(s, 3);
    made.mode = (uint8_t)MAX(mode, 0);
    made.d = destination(s, operand_at(s, 0), mode == PTX_VOTE_BALLOT ? 4 : 0);
    made.negated = operand_at(s, 1)->negated;
    made.a = source(s, operand_at(s, 1), 0, PTX_PRED);
    made.f = source(s, operand_at(s, 2), 4, PTX_B32);
    g_array_index(s->parser->code, ptx_instruction, s->parser->code->len - 1) = made;
}

static void
decode_match(Statement *s)
{
    ptx_instruction made = *instruction(s, ptx_match, PTX_STEP_TOGETHER);
    const bool all = take(s, "all"), any = !all && take(s, "any");
    uint32_t next = 0;

    if (s->parser->failed)
        return;
    if ((!all && !any) || !take(s, "sync"))
        ptx_fail(s->parser, "a match that is not known here");
    made.type = (uint8_t)take_type_word(s);
    modifiers_end(s);
    if (made.type != PTX_B32 && made.type != PTX_B64)
        ptx_fail(s->parser, "a match of a type that is not known here");
    made.mode = all;
    made.d = destination(s, operand_at(s, next++), 4);
    if (all && next < s->operands_count && s->operands[next].second)
        made.e = destination(s, operand_at(s, next++), 0);
    made.width = (uint8_t)ptx_type_bytes(made.type);
    made.a = source(s, operand_at(s, next++), made.width, (enum ptx_type)made.type);
    made.f = source(s, operand_at(s, next++), 4, PTX_B32);
    operands_end(s, next);
    g_array_index(s->parser->code, ptx_instruction, s->parser->code->len - 1) = made;
}

static void
decode_redux(Statement *s)
{
    ptx_instruction made = *instruction(s, ptx_redux, PTX_STEP_TOGETHER);
    const bool sync = take(s, "sync");
    const int mode = take_one(s, atomic_words);
    bool bitwise;

    if (s->parser->failed)
        return;
    made.type = (uint8_t)take_type_word(s);
    modifiers_end(s);
    operands_end(s, 3);
    bitwise = mode == PTX_ATOMIC_AND || mode == PTX_ATOMIC_OR || mode == PTX_ATOMIC_XOR;
    if (!sync || mode < 0 || mode > PTX_ATOMIC_XOR ||
        (bitwise ? made.type != PTX_B32 : made.type != PTX_U32 && made.type != PTX_S32))
        ptx_fail(s->parser, "a redux that is not known here");
    made.mode = (uint8_t)MAX(mode, 0);
    made.d = destination(s, operand_at(s, 0), 4);
    made.a = source(s, operand_at(s, 1), 4, PTX_B32);
    made.f = source(s, operand_at(s, 2), 4, PTX_B32);
    g_array_index(s->parser->code, ptx_instruction, s->parser->code->len - 1) = made;
}

static void
decode_activemask(Statement *s)
{
    ptx_instruction made = *instruction(s, ptx_active_mask, PTX_STEP_MEMORY);

    if (s->parser->failed)
        return;
    if (!take(s, "b32"))
        ptx_fail(s->parser, "an activemask that is not known here");
    modifiers_end(s);
    operands_end(s, 1);
    made.d = destination(s, operand_at(s, 0), 4);
    g_array_index(s->parser->code, ptx_instruction, s->parser->code->len - 1) = made;
}

static void
decode_elect(Statement *s)
{
    ptx_instruction made = *instruction(s, ptx_elect, PTX_STEP_TOGETHER);

    if (s->parser->failed)
        return;
    if (!take(s, "sync"))
        ptx_fail(s->parser, "an elect that is not known here");
    modifiers_end(s);
    operands_end(s, 3);
    if (!operand_at(s, 1)->second)
        ptx_fail(s->parser, "an elect without a predicate");
    made.d = destination(s, operand_at(s, 0), 4);
    made.e = destination(s, operand_at(s, 1), 0);
    made.f = source(s, operand_at(s, 2), 4, PTX_B32);
    g_array_index(s->parser->code, ptx_instruction, s->parser->code->len - 1) = made;
}

/* ---- barriers, jumps ---- */

/* bar.sync a, b; bar.arrive a, b; bar.red.popc.u32 d, a, b, p; bar.warp.sync m; likewise
 * barrier.cta.sync.aligned and the like. */
static void
decode_barrier(Statement *s)
{
    static const char *const kinds[] = { "sync", "arrive", "red", NULL };
    static const char *const operations[] = { "popc", "and", "or", NULL };
    const bool full = ptx_word_is(s->opcode, "barrier");
    const bool warp = !full && take(s, "warp");
    ptx_instruction made =
        *instruction(s, ptx_warp_sync, warp ? PTX_STEP_TOGETHER : PTX_STEP_BARRIER);
    uint32_t next = 0;
    int kind, operation = 0;

    if (s->parser->failed)
        return;
    (void)(!warp && take(s, "cta"));
    kind = take_one(s, kinds);
    if (kind < 0 || (warp && kind != PTX_BARRIER_SYNC))
        ptx_fail(s->parser, "a barrier that is not known here");
    if (warp) {
        modifiers_end(s);
        operands_end(s, 1);
        made.f = source(s, operand_at(s, 0), 4, PTX_B32);
        g_array_index(s->parser->code, ptx_instruction, s->parser->code->len - 1) = made;
        return;
    }
    made.run = NULL;
    made.mode = (uint8_t)MAX(kind, 0);
    if (kind == PTX_BARRIER_RED)
        operation = take_one(s, operations);
    /* Without .aligned, lanes of a warp may arrive separately. */
    made.aligned = take(s, "aligned") || !full;
    if (kind == PTX_BARRIER_RED) {
        if (operation < 0 || !take(s, operation == 0 ? "u32" : "pred"))
            ptx_fail(s->parser, "a barrier that is not known here");
        made.vector = (uint8_t)MAX(operation, 0);
        made.d = destination(s, operand_at(s, next++), operation == 0 ? 4 : 0);
        if (s->operands_count < 3)
            operands_end(s, 3);
        if (s->parser->failed)
            return;
        made.negated = s->operands[s->operands_count - 1].negated;
        made.c = source(s, &s->operands[s->operands_count - 1], 0, PTX_PRED);
        s->operands_count--;
    }
    modifiers_end(s);
    made.a = source(s, operand_at(s, next++), 4, PTX_U32);
    if (next < s->operands_count || kind == PTX_BARRIER_ARRIVE)
        made.b = source(s, operand_at(s, next++), 4, PTX_U32);
    operands_end(s, next);
    g_array_index(s->parser->code, ptx_instruction, s->parser->code->len - 1) = made;
}

/* Fences: the order that atomics give between threads is not tracked; memory here is in order. */
static void
decode_fence(Statement *s)
{
    static const char *const membars[] = { "cta", "gl", "sys", NULL };
    static const char *const fences[] = { "sc", "acq_rel", NULL };

    if (ptx_word_is(s->opcode, "membar")) {
        if (take_one(s, membars) < 0)
            ptx_fail(s->parser, "a membar that is not known here");
    } else {
        (void)take_one(s, fences);
        if (take_one(s, scope_words) < 0)
            ptx_fail(s->parser, "a fence that is not known here");
    }
    modifiers_end(s);
    operands_end(s, 0);
    instruction(s, ptx_nothing, PTX_STEP_LANES);
}

static void
decode_nanosleep(Statement *s)
{
    ptx_instruction *in;

    if (!take(s, "u32"))
        ptx_fail(s->parser, "a nanosleep that is not known here");
    modifiers_end(s);
    operands_end(s, 1);
    in = instruction(s, ptx_nanosleep, PTX_STEP_LANES);
    in->a = source(s, operand_at(s, 0), 4, PTX_U32);
}

/* prefetch, griddepcontrol: no effect here. */
static void
decode_prefetch(Statement *s)
{
    (void)take(s, "global");
    if (!take(s, "L1") && !take(s, "L2"))
        ptx_fail(s->parser, "a prefetch that is not known here");
    modifiers_end(s);
    operands_end(s, 1);
    if (operand_at(s, 0)->kind != PTX_OPERAND_ADDRESS)
        ptx_fail(s->parser, "a prefetch without an address");
    instruction(s, ptx_nothing, PTX_STEP_LANES);
}

static void
decode_griddepcontrol(Statement *s)
{
    if (!take(s, "wait") && !take(s, "launch_dependents"))
        ptx_fail(s->parser, "a griddepcontrol that is not known here");
    modifiers_end(s);
    operands_end(s, 0);
    instruction(s, ptx_nothing, PTX_STEP_LANES);
}

static void
decode_trap(Statement *s)
{
    modifiers_end(s);
    operands_end(s, 0);
    instruction(s, ptx_trap, PTX_STEP_MEMORY);
}

/* exit ends the lanes; so does ret in the kernel itself. In a function ret jumps behind its
 * body. */
static void
decode_return(Statement *s)
{
    const ptx_word end = { "", 0 };

    if (ptx_word_is(s->opcode, "ret"))
        (void)take(s, "uni");
    modifiers_end(s);
    operands_end(s, 0);
    if (ptx_word_is(s->opcode, "ret") && s->parser->instance != 0) {
        ptx_jump(s->parser, s->parser->code->len, end);
        instruction(s, NULL, PTX_STEP_BRANCH);
        return;
    }
    instruction(s, NULL, PTX_STEP_EXIT);
}

/* bra target; brx.idx index, table; the text after the opcode. */
static void
decode_branch(Statement *s, bool table)
{
    ptx_parser *parser = s->parser;
    ptx_instruction made = *instruction(s, NULL, table ? PTX_STEP_TABLE : PTX_STEP_BRANCH);

    if (parser->failed)
        return;
    if (table && !take(s, "idx"))
        ptx_fail(parser, "a brx that is not known here");
    (void)take(s, "uni");
    modifiers_end(s);
    if (table) {
        take_operand(s);
        made.a = source(s, operand_at(s, 0), 4, PTX_U32);
        ptx_expect_sign(parser, ',');
    }
    if (parser->token != PTX_TOKEN_WORD) {
        ptx_fail(parser, "a jump without a target");
        return;
    }
    ptx_jump(parser, parser->code->len - 1, parser->word);
    g_array_index(parser->code, ptx_instruction, parser->code->len - 1) = made;
    ptx_next(parser);
    ptx_expect_sign(parser, ';');
}

/* ---- all of them ---- */

static const struct {
    const char *opcode;
    void (*decode)(Statement *s);
} decoders[] = {
    { "mov", decode_mov },
    { "cvt", decode_cvt },
    { "cvta", decode_cvta },
    { "isspacep", decode_isspacep },
    { "ld", decode_ld },
    { "st", decode_st },
    { "atom", decode_atomic },
    { "red", decode_atomic },
    { "cp", decode_cp },
    { "ldmatrix", decode_matrix },
    { "stmatrix", decode_matrix },
    { "mma", decode_mma },
    { "shfl", decode_shfl },
    { "vote", decode_vote },
    { "match", decode_match },
    { "redux", decode_redux },
    { "activemask", decode_activemask },
    { "elect", decode_elect },
    { "bar", decode_barrier },
    { "barrier", decode_barrier },
    { "membar", decode_fence },
    { "fence", decode_fence },
    { "nanosleep", decode_nanosleep },
    { "prefetch", decode_prefetch },
    { "griddepcontrol", decode_griddepcontrol },
    { "trap", decode_trap },
    { "exit", decode_return },
    { "ret", decode_return },
};

/* Splits "ld.global.f32" into words. */
static bool
split(Statement *s, ptx_word mnemonic)
{
    const char *at = mnemonic.at, *end = mnemonic.at + mnemonic.length;

    while (at <= end) {
        const char *dot = memchr(at, '.', (size_t)(end - at));
        const ptx_word word = { at, (uint32_t)((dot != NULL ? dot : end) - at) };

        if (at == mnemonic.at)
            s->opcode = word;
        else if (s->words_count < PTX_WORDS_MAX)
            s->words[s->words_count++] = word;
        else
            return false;
        at += word.length + 1;
    }
    return true;
}

void
ptx_decode(ptx_parser *parser, uint32_t guard, bool negated)
{
    Statement s = { .parser = parser, .guard = guard, .guard_negated = negated };

    if (parser->token != PTX_TOKEN_WORD || !split(&s, parser->word)) {
        ptx_fail(parser, "expected an instruction");
        return;
    }
    s.opcode.length = MIN(s.opcode.length, 60);
    ptx_next(parser);
    if (ptx_word_is(s.opcode, "call")) {
        (void)take(&s, "uni");
        modifiers_end(&s);
        ptx_inline_call(parser, guard, negated);
        return;
    }
    if (ptx_word_is(s.opcode, "bra") || ptx_word_is(s.opcode, "brx")) {
        decode_branch(&s, ptx_word_is(s.opcode, "brx"));
        return;
    }
    take_operands(&s);
    if (parser->failed)
        return;
    for (size_t i = 0; i < G_N_ELEMENTS(decoders); i++)
        if (ptx_word_is(s.opcode, decoders[i].opcode)) {
            decoders[i].decode(&s);
            return;
        }
    decode_form(&s);
}
