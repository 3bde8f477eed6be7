import { v7 as uuidv7 } from 'uuid'

/** A form with 20 fields, as form tools send it. The email has an id, which the floor replaces. */
export const payload = (id: string = uuidv7()) => ({
  form_id: 'contact',
  submitted_at: '2026-01-01T00:00:00Z',
  data: {
    first_name: 'Ada',
    last_name: 'Lovelace',
    email: `${id}@bench.test`,
    phone: '+41 44 668 18 00',
    job_title: 'Engineer',
    company: 'Analytical Engines',
    website: 'https://example.com',
    address: { street: 'Bahnhofstrasse 1', city: 'Zürich', zip: '8001', country: 'CH' },
    newsletter: true,
    budget: '10000',
    favourite_colour: 'blue',
    utm_source: 'search',
    utm_medium: 'cpc',
    utm_campaign: 'spring',
    language: 'de',
  },
})
