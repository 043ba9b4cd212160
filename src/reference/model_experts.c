/* SPDX-License-Identifier: Apache-2.0 */
#include "reference/model_experts.h"

#include "reference/model_math.h"
#include "reference/model_noise.h"

#include <glib.h>
#include <math.h>
#include <string.h>

static uint64_t
up_width(const LhMixture *s)
{
    return s->ffn * (s->gated ? 2 : 1);
}

/* ---- routing ---- */

/* Selects the experts of a row and computes their weights. */
static void
route_row(const LhMixture *s, const double *logits, uint32_t *chosen, double *weights)
{
    g_autofree bool *taken = g_new0(bool, s->experts);
    double sum = 0;

    for (uint32_t j = 0; j < s->choices; j++) {
        uint32_t best = s->experts;

        for (uint32_t e = s->experts; e-- > 0;) {
            if (!taken[e] && (best == s->experts || logits[e] >= logits[best]))
                best = e;
        }
        taken[best] = true;
        chosen[j] = best;
        weights[j] = exp(logits[best] - logits[chosen[0]]);
        sum += weights[j];
    }
    for (uint32_t j = 0; j < s->choices; j++) {
        weights[j] /= sum;
        weights[j] += lh_model_noise_of_sum(s->model, weights[j] * weights[j]);
    }
}

static void
add_choice(const LhMixture *s, LhMixtureExpert *expert, uint64_t choice, const double *x)
{
    expert->choice = g_renew(uint64_t, expert->choice, expert->count + 1);
    expert->x = g_renew(double, expert->x, (expert->count + 1) * s->hidden);
    expert->choice[expert->count] = choice;
    memcpy(expert->x + expert->count * s->hidden, x + choice / s->choices * s->hidden,
           s->hidden * sizeof(double));
    expert->count++;
}

static void
route(const LhMixture *s, const double *x, LhMixturePass *pass)
{
    const LhMathProduct p = { s->rows, s->hidden, s->experts, s->threads };
    g_autofree double *logits = g_new0(double, s->rows * s->experts);
    g_autofree uint32_t *chosen = g_new(uint32_t, s->choices);

    lh_math_product(&p, x, s->router->value, logits);
    lh_model_disturb(s->model, logits, s->rows, s->experts);
    for (uint64_t row = 0; row < s->rows; row++) {
        route_row(s, logits + row * s->experts, chosen, pass->weights + row * s->choices);
        for (uint32_t j = 0; j < s->choices; j++)
            add_choice(s, &pass->experts[chosen[j]], row * s->choices + j, x);
    }
}

/* ---- experts ---- */

static LhMathProduct
up_product(const LhMixture *s, const LhMixtureExpert *e)
{
    return (LhMathProduct){ e->count, s->hidden, up_width(s), s->threads };
}

static LhMathProduct
down_product(const LhMixture *s, const LhMixtureExpert *e)
{
    return (LhMathProduct){ e->count, s->ffn, s->hidden, s->threads };
}

static void
expert_forward(const LhMixture *s, uint32_t index, LhMixturePass *pass, double *y)
{
    LhMixtureExpert *e = &pass->experts[index];
    const LhMathProduct up = up_product(s, e), down = down_product(s, e);

    e->up = g_new0(double, e->count *up_width(s));
    e->p = g_new0(double, e->count * s->ffn);
    e->m = g_new0(double, e->count * s->hidden);
    lh_math_product(&up, e->x, s->up->value + index * s->hidden * up_width(s), e->up);
    lh_model_disturb(s->model, e->up, e->count, up_width(s));
    lh_math_activate(e->count, s->ffn, s->gated, e->up, e->p);
    lh_model_disturb(s->model, e->p, e->count, s->ffn);
    lh_math_product(&down, e->p, s->down->value + index * s->ffn * s->hidden, e->m);
    lh_model_disturb(s->model, e->m, e->count, s->hidden);
    for (uint64_t i = 0; i < e->count; i++) {
        for (uint64_t c = 0; c < s->hidden; c++)
            y[e->choice[i] / s->choices * s->hidden + c] +=
                pass->weights[e->choice[i]] * e->m[i * s->hidden + c];
    }
}

/* Backward of one expert. Also sets the gradients of its choices' weights. */
static void
expert_backward(const LhMixture *s, uint32_t index, const LhMixturePass *pass, const double *dy,
                double *dx, double *dweights)
{
    const LhMixtureExpert *e = &pass->experts[index];
    const LhMathProduct up = up_product(s, e), down = down_product(s, e);
    const uint64_t h = s->hidden, of_up = index * h * up_width(s), of_down = index * s->ffn * h;
    g_autofree double *dm = g_new0(double, e->count *h), *dp = g_new0(double, e->count * s->ffn);
    g_autofree double *dup = g_new0(double, e->count *up_width(s));
    g_autofree double *de = g_new0(double, e->count *h);

    for (uint64_t i = 0; i < e->count; i++) {
        const uint64_t choice = e->choice[i];
        double terms2 = 0;

        for (uint64_t c = 0; c < h; c++) {
            const double gradient = dy[choice / s->choices * h + c];
            const double term = e->m[i * h + c] * gradient;

            dm[i * h + c] = pass->weights[choice] * gradient;
            dweights[choice] += term;
            terms2 += term * term;
        }
        dweights[choice] += lh_model_noise_of_sum(s->model, terms2);
    }
    lh_model_disturb(s->model, dm, e->count, h);
    lh_math_product_dx(&down, dm, s->down->value + of_down, dp);
    lh_model_disturb(s->model, dp, e->count, s->ffn);
    lh_model_product_dw(s->model, &down, e->p, dm, s->down->gradient + of_down);
    lh_math_activate_back(e->count, s->ffn, s->gated, e->up, dp, dup);
    lh_model_disturb(s->model, dup, e->count, up_width(s));
    lh_math_product_dx(&up, dup, s->up->value + of_up, de);
    lh_model_disturb(s->model, de, e->count, h);
    lh_model_product_dw(s->model, &up, e->x, dup, s->up->gradient + of_up);
    for (uint64_t i = 0; i < e->count; i++) {
        for (uint64_t c = 0; c < h; c++)
            dx[e->choice[i] / s->choices * h + c] += de[i * h + c];
    }
}

/* ---- the mixture ---- */

void
lh_mixture_forward(const LhMixture *s, const double *x, double *y, LhMixturePass *pass)
{
    *pass = (LhMixturePass){ .weights = g_new0(double, s->rows * s->choices),
                             .experts = g_new0(LhMixtureExpert, s->experts),
                             .experts_count = s->experts };
    route(s, x, pass);
    for (uint32_t e = 0; e < s->experts; e++)
        expert_forward(s, e, pass, y);
}

/* Gradients of the logits: for a softmax p, p (dp - the sum of p dp). */
static void
route_backward(const LhMixture *s, const LhMixturePass *pass, const double *dweights,
               double *dlogits)
{
    for (uint32_t e = 0; e < s->experts; e++) {
        const LhMixtureExpert *expert = &pass->experts[e];

        for (uint64_t i = 0; i < expert->count; i++) {
            const uint64_t row = expert->choice[i] / s->choices;
            double sum = 0;

            for (uint64_t j = row * s->choices; j < (row + 1) * s->choices; j++)
                sum += pass->weights[j] * dweights[j];
            dlogits[row * s->experts + e] =
                pass->weights[expert->choice[i]] * (dweights[expert->choice[i]] - sum);
        }
    }
}

void
lh_mixture_backward(const LhMixture *s, const LhMixturePass *pass, const double *x,
                    const double *dy, double *dx)
{
    const LhMathProduct p = { s->rows, s->hidden, s->experts, s->threads };
    g_autofree double *dweights = g_new0(double, s->rows * s->choices);
    g_autofree double *dlogits = g_new0(double, s->rows * s->experts);

    for (uint32_t e = 0; e < s->experts; e++)
        expert_backward(s, e, pass, dy, dx, dweights);
    route_backward(s, pass, dweights, dlogits);
    lh_model_disturb(s->model, dlogits, s->rows, s->experts);
    lh_math_product_dx(&p, dlogits, s->router->value, dx);
    lh_model_product_dw(s->model, &p, x, dlogits, s->router->gradient);
}

void
lh_mixture_clear(LhMixturePass *pass)
{
    for (uint32_t e = 0; e < pass->experts_count; e++) {
        g_free(pass->experts[e].choice);
        g_free(pass->experts[e].x);
        g_free(pass->experts[e].up);
        g_free(pass->experts[e].p);
        g_free(pass->experts[e].m);
    }
    g_free(pass->experts);
    g_free(pass->weights);
    *pass = (LhMixturePass){ 0 };
}
